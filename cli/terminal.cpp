#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/columns.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

constexpr terminal_size usual_terminal{24, 80};

}  // namespace

std::optional<terminal_size> terminal_of(int descriptor) {
  if (::isatty(descriptor) != 1) return std::nullopt;
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return usual_terminal;
  return terminal_size{size.ws_row, size.ws_col};
}

std::string cut_to_width(std::string_view line, std::size_t columns) {
  if (columns_in(line) <= columns) return std::string(line);
  return std::string(line.substr(0, bytes_in_columns(line, std::max<std::size_t>(columns, 1) - 1))) + "…";
}

std::string share_bar(double share, std::size_t width) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  return fmt::format("[{}{}] {:.0f}%", std::string(filled, '#'), std::string(width - filled, '.'), share * 100);
}

void show_line(const std::vector<std::string>& widest_first) {
  // A cursor behind the last column would already be in the next row.
  const std::size_t room = terminal_of(STDERR_FILENO).value_or(usual_terminal).columns - 1;
  const auto fits = [&](const std::string& line) { return columns_in(line) <= room; };
  auto chosen = std::find_if(widest_first.begin(), widest_first.end(), fits);
  if (chosen == widest_first.end()) --chosen;
  write_error(fmt::format("{}{}", clear_line, cut_to_width(*chosen, room)));
}

}  // namespace troupe
