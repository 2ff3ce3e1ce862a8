#include "model/formats/config_parts.hpp"

#include <algorithm>

namespace troupe::detail {

bool is_token(std::int64_t token, const model_config& config) {
  return token >= 0 && token < config.vocab_size;
}

void add_end_token(std::int64_t token, model_config& config) {
  auto& known = config.eos_tokens;
  if (!is_token(token, config) || std::find(known.begin(), known.end(), token) != known.end()) return;
  known.push_back(static_cast<std::int32_t>(token));
}

void stretch_context(model_config& config) {
  const double reached = config.rope.factor * static_cast<double>(config.rope.original_context);
  if (reached <= static_cast<double>(config.context)) return;
  config.context = static_cast<std::int64_t>(std::min<double>(reached, most_tokens + 1));  // which check refuses
}

void set_ropes_by_window(model_config& config, layer_rope within, layer_rope without) {
  for (const std::int64_t window : config.windows) config.layer_ropes.push_back(window != 0 ? within : without);
}

void set_latent_heads(model_config& config) {
  config.kv_heads = 1;
  config.head_dim = config.latent.row();
  config.rotary_dim = config.latent.turned;
}

void set_begin_token(std::int64_t token, model_config& config) {
  config.bos_token = is_token(token, config) ? static_cast<std::int32_t>(token) : -1;
}

}  // namespace troupe::detail
