// Texts as words of a shell's command line.
#pragma once
#include <string>

namespace troupe {

/// A text as one word for a shell, whatever is in it.
std::string quoted_word(const std::string& word);
/// The same as a person would type it: in quotes only if it needs them.
std::string typed_word(const std::string& word);

}  // namespace troupe
