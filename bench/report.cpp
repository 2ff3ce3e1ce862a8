#include "bench/report.hpp"

#include <cstdio>

#include <fmt/format.h>

namespace troupe::bench {

void report::title(std::string_view text) const {
  if (json_) return;
  fmt::print("\n{}\n", text);
  std::fflush(stdout);
}

void report::add(const row& line) const {
  if (json_) {
    std::string text = fmt::format("{{\"name\":\"{}\"", line.name);
    for (const auto& [unit, value] : line.figures) text += fmt::format(",\"{}\":{:.6g}", unit, value);
    fmt::print("{}}}\n", text);
  } else {
    std::string text = fmt::format("  {:<30}", line.name);
    for (const auto& [unit, value] : line.figures) {
      const int digits = value >= 1000 ? 0 : value >= 100 ? 1 : value >= 1 ? 2 : 3;
      text += fmt::format("{:>11.{}f} {:<14}", value, digits, unit);
    }
    fmt::print("{}\n", text);
  }
  std::fflush(stdout);
}

}  // namespace troupe::bench
