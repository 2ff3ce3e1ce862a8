#include "model/formats/hf_delta.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

mixer_kind mixer_called(const std::string& type, const std::string& where) {
  if (type == "linear_attention") return mixer_kind::delta;
  if (type == "full_attention") return mixer_kind::attention;
  refuse("{}: the layer type \"{}\" is not supported: linear_attention and full_attention are", where,
         type.substr(0, 80));
}

}  // namespace

void read_delta(const json_fields<nlohmann::json>& config, model_config& into) {
  into.delta = {.key_heads = config.integer("linear_num_key_heads").value_or(16),
                .value_heads = config.integer("linear_num_value_heads").value_or(32),
                .key_dim = config.integer("linear_key_head_dim").value_or(128),
                .value_dim = config.integer("linear_value_head_dim").value_or(128),
                .kernel = config.integer("linear_conv_kernel_dim").value_or(4)};
  if (!config.boolean("attn_output_gate").value_or(true))
    refuse("{}: \"attn_output_gate\" is false, which is not supported", config.where());
}

/// Unless they are listed, every n-th attends.
void read_mixers(const json_fields<nlohmann::json>& config, model_config& into) {
  const auto types = config.texts("layer_types");
  if (types && static_cast<std::int64_t>(types->size()) != into.layers)
    refuse("{}: \"layer_types\" has {} entries for {} layers", config.where(), types->size(), into.layers);
  const std::int64_t interval = config.integer("full_attention_interval").value_or(4);
  if (interval < 1) refuse("{}: \"full_attention_interval\" is {}", config.where(), interval);
  for (std::int64_t i = 0; i < into.layers; ++i) {
    const bool attends = (i + 1) % interval == 0;
    into.mixers.push_back(types     ? mixer_called((*types)[to_size(i)], config.where())
                          : attends ? mixer_kind::attention
                                    : mixer_kind::delta);
  }
}

}  // namespace troupe::detail
