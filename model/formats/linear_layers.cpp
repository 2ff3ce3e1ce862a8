#include "model/formats/linear_layers.hpp"

#include "base/error.hpp"

namespace troupe {

std::vector<std::string_view> linear_modules(const model_config& config) {
  std::vector<std::string_view> modules;
  for (const linear_kind kind : every_linear)
    if (kind != linear_kind::gate || config.gated_mlp) modules.push_back(name_of(kind));
  return modules;
}

std::pair<std::int64_t, std::int64_t> linear_shape(const model_config& config, std::string_view module) {
  const auto queries = config.heads * config.head_dim, keys = config.kv_heads * config.head_dim;
  if (module == "self_attn.q_proj") return {queries, config.hidden};
  if (module == "self_attn.k_proj" || module == "self_attn.v_proj") return {keys, config.hidden};
  if (module == "self_attn.o_proj") return {config.hidden, queries};
  if (module == "mlp.up_proj" || (module == "mlp.gate_proj" && config.gated_mlp)) return {config.ffn, config.hidden};
  if (module == "mlp.down_proj") return {config.hidden, config.ffn};
  refuse("a {} model has no linear layer \"{}\"", config.family, module);
}

}  // namespace troupe
