#include "bench/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace troupe::bench {
namespace {

constexpr std::size_t figures_in_a_line = 4;

}  // namespace

void report::title(std::string_view text) const {
  if (!json_) print_(fmt::format("\n{}\n", text));
}

void report::add(const row& line) const {
  if (json_) {
    std::string text = fmt::format("{{\"name\":{}", nlohmann::json(line.name).dump());
    for (const auto& [unit, value] : line.figures) text += fmt::format(",\"{}\":{:.6g}", unit, value);
    print_(text + "}\n");
  } else {
    std::string text = fmt::format("  {:<30}", line.name);
    std::size_t shown = 0;
    for (const auto& [unit, value] : line.figures) {
      if (shown > 0 && shown % figures_in_a_line == 0) text += fmt::format("\n{:<32}", "");
      ++shown;
      const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 1 ? 2 : 3;
      text += fmt::format("{:>11.{}f} {:<14}", value, digits, unit);
    }
    print_(text + "\n");
  }
}

}  // namespace troupe::bench
