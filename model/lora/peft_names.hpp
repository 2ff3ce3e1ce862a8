#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/linear_layers.hpp"
#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// What stands before a module's name within its layer: "model.layers.3."
std::string peft_prefix(const model_config& base, std::int64_t layer, linear_kind kind);
/// PEFT's name of a linear layer. Those that their class has as one have one name.
std::string peft_name(const model_config& base, std::int64_t layer, linear_kind kind);

/// Our linear layers that a PEFT module stands for: one, or several that its class has as one.
struct adapted_linears {
  std::int64_t layer = 0;
  std::vector<linear_kind> kinds;
};

/// No kinds where the base has no such linear layer.
adapted_linears find_linears(std::string_view module, const model_config& base);

}  // namespace troupe::detail
