#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::detail {

/// What of a PEFT adapter_config.json decides targets, rank and scale; all that this program does not compute is
/// refused.
struct adapter_config {
  std::int64_t rank = 8;
  double alpha = 8;
  bool rank_stabilized = false;
  /// Patterns in the order of the file: the first that fits a module counts.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  /// Names of modules, or the ends of such after a dot; nothing where a pattern or a word stands for them.
  std::optional<std::vector<std::string>> target_modules;
  std::string where;

  bool targets(std::string_view module) const;
  std::int64_t rank_of(std::string_view module) const;
  float scale_of(std::string_view module) const;
};

/// Whether a pattern fits the end of a module's name from a dot on. `where` is what errors call the pattern's place.
bool module_fits(const std::string& pattern, std::string_view module, const std::string& where);

adapter_config parse_adapter_config(std::string_view json, const std::string& where);

}  // namespace troupe::detail
