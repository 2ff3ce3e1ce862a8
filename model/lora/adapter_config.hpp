#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

/// How large an adapter's factors are, and by what their product is multiplied, module by module: as PEFT says it.
struct factor_rules {
  std::int64_t rank = 8;
  double alpha = 16;
  bool rank_stabilized = false;  ///< scale alpha / sqrt(rank) instead of alpha / rank: rsLoRA
  /// By patterns that fit the end of a module's name from a dot on. The first that fits counts.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern = {};
  std::vector<std::pair<std::string, double>> alpha_pattern = {};

  /// `where` is what errors call the rules' place.
  std::int64_t rank_of(std::string_view module, const std::string& where) const;
  float scale_of(std::string_view module, const std::string& where) const;
};

namespace detail {

/// Modules as target_modules and exclude_modules name them: by names or the ends of such after a dot, or by an
/// expression that fits whole names.
struct module_choice {
  std::vector<std::string> names;
  std::string expression;  ///< empty: the names count

  /// `where` is what errors call the expression's place.
  bool holds(std::string_view module, const std::string& where) const;
  /// By its whole name, not by its end or an expression.
  bool names_whole(std::string_view module) const;
};

/// What of a PEFT adapter_config.json decides targets, rank and scale; all that this program does not compute is
/// refused.
struct adapter_config {
  factor_rules factors;
  std::optional<module_choice> target_modules;  ///< none: all modules
  module_choice exclude_modules;
  std::vector<std::int64_t> layers;  ///< layers_to_transform; empty: all
  std::string where;

  /// The setting by which a module of the layer is not adapted, whatever the file has for it; empty: none.
  std::string_view left_out_by(std::string_view module, std::int64_t layer) const;
};

/// Whether a pattern fits the end of a module's name from a dot on. `where` is what errors call the pattern's place.
bool module_fits(const std::string& pattern, std::string_view module, const std::string& where);

adapter_config parse_adapter_config(std::string_view json, const std::string& where);

}  // namespace detail
}  // namespace troupe
