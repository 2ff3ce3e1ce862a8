#include "model/formats/gguf/gguf_facts.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

constexpr std::string_view vocab_key = "troupe.vocab_size";
constexpr std::string_view tied_key = "troupe.tied_embeddings";
constexpr std::string_view qkv_key = "troupe.qkv_bias";
constexpr std::string_view out_key = "troupe.out_bias";
constexpr std::string_view mlp_key = "troupe.mlp_bias";
constexpr std::string_view qk_norm_key = "troupe.qk_norm";
constexpr std::string_view choice_key = "troupe.choice_bias";
constexpr std::string_view lacks_values_key = "troupe.lacks_values";
constexpr std::string_view factors_key = "troupe.layer_factors";
constexpr std::string_view divisors_key = "troupe.rope.frequency_divisors";
constexpr std::string_view short_key = "troupe.rope.short_divisors";
constexpr std::int64_t most_divisors = 4096;

std::vector<double> read_divisors(const tensor_set& tensors, const char* name, const std::string& where) {
  const auto* tensor = tensors.find(name);
  if (!tensor) return {};
  if (tensor->type != dtype::f32 || tensor->shape.size() != 1 || tensor->shape[0] < 1 ||
      tensor->shape[0] > most_divisors)
    refuse("{}: tensor \"{}\" should be F32 of one dimension, but is {} {}", where, name, name_of(tensor->type),
           text_of(tensor->shape));
  std::vector<float> values(to_size(tensor->shape[0]));
  to_floats(dtype::f32, tensor->data.data(), tensor->shape[0], values.data());
  return {values.begin(), values.end()};
}

bool has_choice_bias(const tensor_set& tensors) {
  return std::any_of(tensors.tensors.begin(), tensors.tensors.end(),
                     [](const auto& each) { return each.first.ends_with(".exp_probs_b.bias"); });
}

bool lacks_values(const tensor_set& tensors) {
  constexpr std::string_view keys = ".attn_k.weight", values = ".attn_v.weight";
  return std::any_of(tensors.tensors.begin(), tensors.tensors.end(), [&](const auto& each) {
    const std::string_view name = each.first;
    return name.ends_with(keys) &&
           !tensors.find(std::string(name.substr(0, name.size() - keys.size())) + std::string(values));
  });
}

}  // namespace

gguf_facts read_facts(const gguf_file& file) {
  const auto& tensors = file.tensors;
  const bool bare = tensors.tensors.empty();
  const auto fact = [&](std::string_view key, const char* tensor) {
    return file.get<bool>(key).value_or(!bare && tensors.find(tensor) != nullptr);
  };
  gguf_facts facts;
  if (const auto* embeddings = tensors.find("token_embd.weight"); embeddings && embeddings->shape.size() == 2)
    facts.vocab_size = embeddings->shape[0];
  else
    facts.vocab_size = file.get<std::int64_t>(vocab_key);
  facts.tied_embeddings = file.get<bool>(tied_key).value_or(!bare && !tensors.find("output.weight"));
  facts.joined_qkv = tensors.find("blk.0.attn_qkv.weight") != nullptr;
  facts.joined_qkvz = tensors.find("blk.0.ssm_in.weight") != nullptr;
  facts.qkv_bias = fact(qkv_key, facts.joined_qkv ? "blk.0.attn_qkv.bias" : "blk.0.attn_q.bias");
  facts.out_bias = fact(out_key, "blk.0.attn_output.bias");
  facts.mlp_bias = fact(mlp_key, "blk.0.ffn_up.bias");
  facts.joined_gates_and_ups = tensors.find("blk.0.ffn_gate_up_exps.weight") != nullptr;
  facts.choice_bias = file.get<bool>(choice_key).value_or(has_choice_bias(tensors));
  facts.lacks_values = file.get<bool>(lacks_values_key).value_or(lacks_values(tensors));
  facts.layer_factors = fact(factors_key, "blk.0.layer_output_scale.weight");
  facts.qk_norm = fact(qk_norm_key, "blk.0.attn_q_norm.weight");
  const auto divisors = [&](std::string_view key, const char* tensor) {
    return bare ? file.get<std::vector<double>>(key).value_or(std::vector<double>{})
                : read_divisors(tensors, tensor, file.name);
  };
  facts.short_divisors = divisors(short_key, "rope_factors_short.weight");
  facts.frequency_divisors =
      divisors(divisors_key, facts.short_divisors.empty() ? "rope_freqs.weight" : "rope_factors_long.weight");
  return facts;
}

void write_facts(const gguf_facts& facts, gguf_file& into) {
  if (facts.vocab_size) into.metadata.insert_or_assign(std::string(vocab_key), *facts.vocab_size);
  into.metadata.insert_or_assign(std::string(tied_key), facts.tied_embeddings);
  into.metadata.insert_or_assign(std::string(qkv_key), facts.qkv_bias);
  into.metadata.insert_or_assign(std::string(out_key), facts.out_bias);
  into.metadata.insert_or_assign(std::string(mlp_key), facts.mlp_bias);
  into.metadata.insert_or_assign(std::string(qk_norm_key), facts.qk_norm);
  into.metadata.insert_or_assign(std::string(choice_key), facts.choice_bias);
  into.metadata.insert_or_assign(std::string(lacks_values_key), facts.lacks_values);
  into.metadata.insert_or_assign(std::string(factors_key), facts.layer_factors);
  if (!facts.frequency_divisors.empty())
    into.metadata.insert_or_assign(std::string(divisors_key), facts.frequency_divisors);
  if (!facts.short_divisors.empty()) into.metadata.insert_or_assign(std::string(short_key), facts.short_divisors);
}

}  // namespace troupe::detail
