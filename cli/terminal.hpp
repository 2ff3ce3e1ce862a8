// How much a terminal shows, and lines that fit into it.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct terminal_size {
  std::size_t rows = 0, columns = 0;
};

/// Of the terminal behind a descriptor; nothing where there is none.
std::optional<terminal_size> terminal_of(int descriptor);

/// Of UTF-8: characters, not bytes.
std::size_t width_of(std::string_view text);
/// The beginning of a line that is not wider than this.
std::string_view cut_to_width(std::string_view line, std::size_t columns);

/// "[####......] 40%"
std::string share_bar(double share, std::size_t width);
/// Replaces the last line that was shown so on standard error, a terminal: with the first of these that fits, or what
/// fits of the last one. Of a line that takes two rows only one could be replaced.
void show_line(const std::vector<std::string>& widest_first);

}  // namespace troupe
