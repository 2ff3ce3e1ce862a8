#pragma once
#include <span>
#include <string_view>

namespace troupe {

/// Which of the words was most likely meant, by how many letters there are to insert, drop, change or swap with the
/// next: at most one, or a third of them all. Empty where none is as close as that, and for a word of more than 64
/// bytes.
std::string_view nearest(std::string_view word, std::span<const std::string_view> words);

}  // namespace troupe
