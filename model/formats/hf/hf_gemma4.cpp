// What Gemma 4's layers have that other models lack: two kinds of heads, keys that are shared, numbers of each token,
// experts beside an mlp.
#include <optional>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/hf/hf_own_fields.hpp"
#include "model/formats/hf/hf_values.hpp"

namespace troupe::detail::own_fields {
namespace {

using fields = json_fields<nlohmann::json>;

/// transformers 5.24 writes the heads of each layer that sees all in place of the two fields, as far as they are
/// others.
void read_heads_by_layer(const fields& config, const nlohmann::json& by_layer, model_config& into) {
  const fields layers(by_layer, config.where() + ": per_layer_config");
  std::optional<std::pair<std::int64_t, std::int64_t>> first;
  into.wide.dim = into.head_dim, into.wide.kv_heads = into.kv_heads;
  for (const auto& [layer, value] : by_layer.items()) {
    const fields own(value, layers.where() + ": " + layer.substr(0, 80));
    const std::pair heads{own.integer("head_dim").value_or(into.head_dim),
                          own.integer("num_key_value_heads").value_or(into.kv_heads)};
    if (first && heads != *first) refuse("{}: other heads than of the layers before it are not supported", own.where());
    first = heads;
  }
  if (first) std::tie(into.wide.dim, into.wide.kv_heads) = *first;
}

void read_heads(const fields& config, model_config& into) {
  into.wide.values_are_keys = config.boolean("attention_k_eq_v").value_or(false);
  into.wide.dim = config.integer("global_head_dim").value_or(512);
  into.wide.kv_heads = into.kv_heads;
  if (into.wide.values_are_keys)
    into.wide.kv_heads = config.integer("num_global_key_value_heads").value_or(into.kv_heads);
  if (const auto* by_layer = config.find("per_layer_config")) read_heads_by_layer(config, *by_layer, into);
}

void read_mixture(const fields& config, model_config& into) {
  if (!config.boolean("enable_moe_block").value_or(false)) return;
  into.experts.apart = true;
  into.experts.count = size_or_none(config, "num_experts");
  into.experts.taken = size_or_none(config, "top_k_experts");
  into.experts.shared_ffn = std::exchange(into.ffn, size_or_none(config, "moe_intermediate_size"));
  if (into.experts.count == 0) refuse("{}: \"enable_moe_block\" is set, but not \"num_experts\"", config.where());
}

}  // namespace

void gemma4(const fields& config, model_config& into) {
  // "vision": of pictures alone
  if (config.text("use_bidirectional_attention").value_or("") == "all")
    refuse("{}: \"use_bidirectional_attention\" is \"all\", which is not supported", config.where());
  into.logit_cap = factor(config, "final_logit_softcapping", 0.0);
  into.layer_embedding = size_or_none(config, "hidden_size_per_layer_input");
  into.sharing_layers = size_or_none(config, "num_kv_shared_layers");
  const bool doubles = config.boolean("use_double_wide_mlp").value_or(false);
  if (doubles && into.sharing_layers > 0) into.sharing_ffn = 2 * into.ffn;
  read_heads(config, into);
  read_mixture(config, into);
}

}  // namespace troupe::detail::own_fields
