// What those who read configurations share.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/formats/model_config.hpp"

namespace troupe::detail {

/// Of a vocabulary and of a context: `check` refuses more.
constexpr std::int64_t most_tokens = std::int64_t{1} << 24;

bool is_token(std::int64_t token, const model_config& config);
/// Unless the vocabulary lacks it, as happens in published configurations, or it is known already.
void add_end_token(std::int64_t token, model_config& config);
/// With YaRN a model reaches `factor` times its original context, even if its file names a smaller one: so vLLM has it.
void stretch_context(model_config& config);
/// Yes for the n-th layer, the one n behind it, and so on.
std::vector<bool> every_nth(std::int64_t n, std::size_t layers);
/// How layers with a window turn their heads, and how those without.
void set_ropes_by_window(model_config& config, layer_rope within, layer_rope without);
/// Those of latent attention, as config.latent has them.
void set_latent_heads(model_config& config);
/// The layers of a file of Nemotron-H, a letter for each: M is a state space, * attends, - is an mlp, E a mixture of
/// experts. Each of the latter two becomes part of the layer before it.
void set_file_layers(std::string_view letters, const std::string& where, model_config& config);
/// None where the vocabulary lacks it.
void set_begin_token(std::int64_t token, model_config& config);

}  // namespace troupe::detail
