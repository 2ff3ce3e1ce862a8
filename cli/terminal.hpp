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

/// As much of a line as is no wider than this, with "…" at its end if some is cut off.
std::string cut_to_width(std::string_view line, std::size_t columns);

/// "[####......] 40%"
std::string share_bar(double share, std::size_t width);
/// Replaces the line that was last shown in this way on standard error, which must be a terminal: by the first of these
/// texts that fits, or by what fits of the last one. A line must not take two rows, since only one of them could be
/// replaced.
void show_line(const std::vector<std::string>& widest_first);

}  // namespace troupe
