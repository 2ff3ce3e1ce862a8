#include "model/formats/config_parts.hpp"

#include <algorithm>

#include "base/error.hpp"

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

std::vector<bool> every_nth(std::int64_t n, std::size_t layers) {
  std::vector<bool> chosen;
  for (std::int64_t i = 1; chosen.size() < layers; ++i) chosen.push_back(i % n == 0);
  return chosen;
}

void set_ropes_by_window(model_config& config, layer_rope within, layer_rope without) {
  for (const std::int64_t window : config.windows) config.layer_ropes.push_back(window != 0 ? within : without);
}

void set_latent_heads(model_config& config) {
  config.kv_heads = 1;
  config.head_dim = config.latent.row();
  config.rotary_dim = config.latent.turned;
}

void set_file_layers(std::string_view letters, const std::string& where, model_config& config) {
  for (std::size_t i = 0; i < letters.size(); ++i) {
    const auto number = static_cast<std::int64_t>(i);
    if (letters[i] == 'M' || letters[i] == '*') {
      config.mixers.push_back(letters[i] == '*' ? mixer_kind::attention : mixer_kind::delta);
      config.file.layers.push_back({.mixer = number});
      config.experts.dense_layers.push_back(false);
    } else if (letters[i] != '-' && letters[i] != 'E') {
      refuse(
          "{}: layer {} is of a kind that is not supported: M (Mamba-2), * (attention), - (an mlp) and E (experts) are",
          where, i);
    } else if (config.file.layers.empty() || config.file.layers.back().mlp >= 0) {
      refuse("{}: layer {} is an mlp with nothing before it that mixes rows, which is not supported", where, i);
    } else {
      config.file.layers.back().mlp = number;
      config.experts.dense_layers.back() = letters[i] == '-';
    }
  }
  config.layers = static_cast<std::int64_t>(config.file.layers.size());
  const auto has = [&](char kind) { return letters.find(kind) != letters.npos; };
  if (!has('-') || !has('E')) config.experts.dense_layers.clear();
}

void set_begin_token(std::int64_t token, model_config& config) {
  config.bos_token = is_token(token, config) ? static_cast<std::int32_t>(token) : -1;
}

}  // namespace troupe::detail
