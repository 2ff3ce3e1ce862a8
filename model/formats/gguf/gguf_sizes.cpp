#include "model/formats/gguf/gguf_sizes.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "model/formats/config_parts.hpp"
#include "model/formats/gguf/gguf_layers.hpp"

namespace troupe::detail {
namespace {

constexpr std::string_view kv_heads_key = "attention.head_count_kv";

std::int64_t usual_head_dim(const arch_keys& keys, const model_config& model) {
  return keys.size("attention.key_length", std::max<std::int64_t>(model.hidden / model.heads, 1));
}

/// Mixtures without any other mlp may name that of the experts alone.
std::int64_t mlp_size(const arch_keys& keys) {
  const auto of_experts = keys.get<std::int64_t>("expert_feed_forward_length");
  return of_experts ? keys.size("feed_forward_length", *of_experts) : keys.size("feed_forward_length");
}

/// Those that do not attend have none.
void read_listed_heads(const arch_keys& keys, const std::vector<std::int64_t>& listed, mixer_kind other,
                       model_config& into) {
  if (listed.size() != listed_layers(into))
    refuse("{}: \"{}\" has {} entries for {} layers", keys.where(), keys.full(kv_heads_key), listed.size(),
           into.layers);
  into.kv_heads = std::max<std::int64_t>(*std::ranges::max_element(listed), 1);
  for (const std::int64_t heads : listed) {
    if (heads != 0 && heads != into.kv_heads)
      refuse("{}: \"{}\" has {} and {}: other numbers than one and 0 are not supported", keys.where(),
             keys.full(kv_heads_key), into.kv_heads, heads);
    into.mixers.push_back(heads != 0 ? mixer_kind::attention : other);
  }
}

void read_sizes_beside(const arch_keys& keys, mixer_kind other, model_config& into) {
  const auto listed = keys.numbers(kv_heads_key);
  if (!listed) return read_usual_sizes(keys, into);
  read_listed_heads(keys, *listed, other, into);
  into.head_dim = usual_head_dim(keys, into);
  into.ffn = mlp_size(keys);
}

/// Of two kinds of layers, which have one number each, in a list of all; or of all layers the same.
struct numbers_of_kinds {
  std::int64_t first = 0, second = 0;
};
numbers_of_kinds by_kind(const arch_keys& keys, std::string_view key, const std::vector<bool>& is_second) {
  const auto listed = keys.numbers(key);
  if (!listed) return {keys.size(key), keys.size(key)};
  if (listed->size() != is_second.size())
    refuse("{}: \"{}\" has {} entries for {} layers", keys.where(), keys.full(key), listed->size(), is_second.size());
  numbers_of_kinds found;
  for (std::size_t i = 0; i < listed->size(); ++i) {
    std::int64_t& own = is_second[i] ? found.second : found.first;
    if (own != 0 && own != (*listed)[i])
      refuse("{}: \"{}\" has {} and {} for layers of one kind", keys.where(), keys.full(key), own, (*listed)[i]);
    own = (*listed)[i];
  }
  if (found.first == 0) found.first = found.second;
  if (found.second == 0) found.second = found.first;
  return found;
}

}  // namespace

void read_usual_sizes(const arch_keys& keys, model_config& into) {
  into.kv_heads = keys.size(kv_heads_key, into.heads);
  into.head_dim = usual_head_dim(keys, into);
  into.ffn = mlp_size(keys);
}

void read_lfm2_sizes(const arch_keys& keys, model_config& into) {
  read_sizes_beside(keys, mixer_kind::convolution, into);
}

void read_granite_hybrid_sizes(const arch_keys& keys, model_config& into) {
  read_sizes_beside(keys, mixer_kind::delta, into);
}

/// Layers that see all have other heads than those with a window, the last ones no keys and maybe a wider mlp.
void read_gemma4_sizes(const arch_keys& keys, model_config& into) {
  std::vector<bool> is_global = sliding_layers(keys, 6, into), shares(listed_layers(into));
  is_global.flip();
  into.experts.apart = into.experts.count != 0;
  into.wide.dim = keys.size("attention.key_length");
  into.head_dim = keys.size("attention.key_length_swa", into.wide.dim);
  const auto heads = by_kind(keys, "attention.head_count_kv", is_global);
  into.kv_heads = heads.first, into.wide.kv_heads = heads.second;
  into.sharing_layers = keys.get<std::int64_t>("attention.shared_kv_layers").value_or(0);
  into.layer_embedding = keys.get<std::int64_t>("embedding_length_per_layer_input").value_or(0);
  if (into.sharing_layers < 0 || into.sharing_layers > into.layers || into.layer_embedding < 0)
    refuse("{}: {} layers share keys, and a token brings {} numbers to each", keys.where(), into.sharing_layers,
           into.layer_embedding);
  std::fill(shares.end() - static_cast<std::ptrdiff_t>(std::min(to_size(into.sharing_layers), shares.size())),
            shares.end(), true);
  const auto mlps = by_kind(keys, "feed_forward_length", shares);
  into.ffn = mlps.first;
  if (mlps.second != mlps.first) into.sharing_ffn = mlps.second;
}

void read_nemotron_sizes(const arch_keys& keys, model_config& into) {
  const auto listed = [&](std::string_view key) {
    const auto numbers = keys.numbers(key);
    if (!numbers || numbers->size() != listed_layers(into))
      refuse("{}: \"{}\" should list a number for each of {} layers", keys.where(), keys.full(key), into.layers);
    const std::int64_t most = *std::ranges::max_element(*numbers);
    for (const std::int64_t number : *numbers)
      if (number != 0 && number != most)
        refuse("{}: \"{}\" has {} and {}: other numbers than one and 0 are not supported", keys.where(), keys.full(key),
               most, number);
    return *numbers;
  };
  const auto heads = listed("attention.head_count_kv"), mlps = listed("feed_forward_length");
  const char mlp = keys.has("expert_count") ? 'E' : '-';
  leave_out_predicting_layers(keys, into);
  std::string letters;
  for (std::size_t i = 0; i < listed_layers(into); ++i) letters += heads[i] != 0 ? '*' : mlps[i] != 0 ? mlp : 'M';
  into.kv_heads = std::max<std::int64_t>(*std::ranges::max_element(heads), 1);
  into.ffn = std::max<std::int64_t>(*std::ranges::max_element(mlps), 1);
  into.head_dim = usual_head_dim(keys, into);
  set_file_layers(letters, keys.where(), into);
}

void read_latent_sizes(const arch_keys& keys, model_config& into) {
  constexpr std::string_view query_key = "attention.key_length_mla";
  if (!keys.has(query_key))
    refuse("{}: lacks the metadata key \"{}\": files of before April 2025 have other tensors: convert the model again",
           keys.where(), keys.full(query_key));
  into.latent.rank = keys.size("attention.kv_lora_rank");
  into.latent.query_rank = keys.get<std::int64_t>("attention.q_lora_rank").value_or(0);
  into.latent.turned = keys.size("rope.dimension_count");
  into.latent.plain = keys.size(query_key) - into.latent.turned;
  into.latent.value = keys.size("attention.value_length_mla");
  set_latent_heads(into);
  into.ffn = mlp_size(keys);
}

}  // namespace troupe::detail
