#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/lora/module_pattern.hpp"
#include "model/ops/kernels.hpp"  // most_adapter_rank

namespace troupe {

/// How large an adapter's factors are, and by what their product is multiplied, module by module: as PEFT says it.
struct factor_rules {
  std::int64_t rank = 8;  ///< most_adapter_rank at most
  double alpha = 16;
  bool rank_stabilized = false;  ///< scale alpha / sqrt(rank) instead of alpha / rank: rsLoRA
  /// By patterns that fit the end of a module's name from a dot on. The first that fits counts.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern = {};
  std::vector<std::pair<std::string, double>> alpha_pattern = {};
};

/// Such rules with their patterns compiled, for many modules.
class module_factors {
 public:
  /// `where` is what errors call the rules' place. Throws input_error where a pattern is no regular expression.
  module_factors(const factor_rules& rules, const std::string& where);

  std::int64_t rank_of(std::string_view module) const;
  /// Throws input_error where it is not finite.
  float scale_of(std::string_view module) const;

 private:
  std::string where_;
  std::int64_t rank_;
  double alpha_;
  bool rank_stabilized_;
  std::vector<std::pair<detail::module_pattern, std::int64_t>> rank_pattern_;
  std::vector<std::pair<detail::module_pattern, double>> alpha_pattern_;
};

namespace detail {

/// Modules as target_modules and exclude_modules name them: by names or the ends of such after a dot, or by an
/// expression that fits whole names.
struct module_choice {
  std::vector<std::string> names;
  std::optional<module_pattern> expression = {};  ///< none: the names count

  bool holds(std::string_view module) const;
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

/// An adapter has no more patterns, of its ranks or its alphas, nor targets.
inline constexpr std::size_t most_patterns = 4096;
/// Throws input_error where there are more, or longer ones than an adapter may have. `where` is what errors call the
/// rules' place.
void check_sizes(const factor_rules& rules, const std::string& where);

adapter_config parse_adapter_config(std::string_view json, const std::string& where);

}  // namespace detail
}  // namespace troupe
