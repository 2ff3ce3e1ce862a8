#include "cli/table.hpp"

#include <algorithm>

#include "base/columns.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.,%/-") == std::string_view::npos;
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], columns_in(one_line(row[i])));
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string cell = one_line(row[i]);
      const std::string padding(widths[i] - columns_in(cell), ' ');
      line += (i > 0 ? "  " : "") + (is_number(cell) ? padding + cell : cell + padding);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace troupe
