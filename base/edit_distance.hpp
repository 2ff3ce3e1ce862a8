#pragma once
#include <cstddef>
#include <string_view>

namespace troupe {

/// How many letters to insert, drop or change to get from one word to the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

}  // namespace troupe
