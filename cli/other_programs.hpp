// What people know from other programs, so that an error can say how it is done here.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Which of the candidates does what other programs have this word for; nullptr: none.
const std::string* our_word_for(const std::string& word, const std::vector<std::string>& candidates);
/// How that is done here for which other programs have this word, if the command has none; empty: nothing is known.
std::string_view our_way_of(std::string_view word, std::string_view command);

}  // namespace troupe
