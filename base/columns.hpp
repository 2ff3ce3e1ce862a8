// How much room UTF-8 takes on a terminal, where a Chinese character or an emoji takes two columns and an accent none.
// Terminals differ in rare characters: those count as the wider ones show them, since a line that is too long is worse.
#pragma once
#include <cstddef>
#include <string_view>

namespace troupe {

std::size_t columns_in(std::string_view text);
/// How many bytes of a text fit into so many columns, as whole characters with their accents.
std::size_t bytes_in_columns(std::string_view text, std::size_t columns);

}  // namespace troupe
