// What a placement reckons with: weights as they are packed, keys and values, and the working memory of a pass.
#include "model/arch/model_memory.hpp"

#include <gtest/gtest.h>

#include "model/arch/kv_storage.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

std::uint64_t size_of(scheme kind, std::int64_t outs, std::int64_t ins) {
  return packed_bytes(kind, outs, ins).total();
}

TEST(model_memory, has_all_matrices_of_a_layer) {
  const auto model = load_for_test(golden / "llama", scheme::bf16);
  const model_config& of = model->config;
  const std::int64_t queries = of.heads * of.head_dim, keys = of.kv_heads * of.head_dim;
  const auto size = [](std::int64_t outs, std::int64_t ins) { return size_of(scheme::bf16, outs, ins); };
  const weight_sizes weights = weight_bytes(*model);
  EXPECT_EQ(weights.layer, size(queries, of.hidden) + 2 * size(keys, of.hidden) + size(of.hidden, queries) +
                               2 * size(of.ffn, of.hidden) + size(of.hidden, of.ffn));
  EXPECT_EQ(weights.embedding, size(of.vocab_size, of.hidden));
  EXPECT_EQ(weights.head, weights.embedding);
  EXPECT_FALSE(weights.tied);
  EXPECT_TRUE(weight_bytes(*load_for_test(golden / "llama-tied-llama3", scheme::bf16)).tied);
}

TEST(model_memory, has_a_layers_part_of_what_belongs_to_tokens) {
  const auto model = load_for_test(golden / "gemma4-small", scheme::bf16);
  loaded_model tokens;
  tokens.config = model->config;
  tokens.token_embeddings = model->token_embeddings;
  tokens.token_projection = model->token_projection;
  const std::int64_t numbers = model->config.layers * model->config.layer_embedding;
  const std::uint64_t of_tokens =
      size_of(scheme::bf16, model->config.vocab_size, numbers) + size_of(scheme::bf16, numbers, model->config.hidden);
  EXPECT_EQ(weight_bytes(tokens).layer, of_tokens / static_cast<std::uint64_t>(model->config.layers));
  EXPECT_GT(weight_bytes(*model).layer, weight_bytes(tokens).layer);
}

TEST(model_memory, has_keys_and_values_of_the_layer_that_keeps_most) {
  const model_config plain = load_for_test(golden / "gemma2", scheme::u8)->config;
  EXPECT_EQ(most_kv_bytes_of_token(plain, kv_kind::f16), 2 * 2 * 16 * 2u) << "2 heads of 16";
  const model_config mixed = load_for_test(golden / "qwen3.5", scheme::u8)->config;
  EXPECT_EQ(most_kv_bytes_of_token(mixed, kv_kind::f32), 2 * 2 * 16 * 4u) << "one layer of three has any";
  const model_config whole = load_for_test(golden / "gemma4-small", scheme::u8)->config;
  const std::int64_t all = kv_storage::bytes_per_block(whole, kv_kind::f16);
  EXPECT_EQ(most_kv_bytes_of_token(whole, kv_kind::f16), static_cast<std::uint64_t>(all / whole.layers / 16));
}

TEST(model_memory, has_room_for_each_row_sequence_guess_and_thread_of_a_pass) {
  const model_config of = load_for_test(golden / "llama", scheme::u8)->config;
  const pass_room room{.rows = 64, .sequences = 4, .guesses = 0, .context = 128, .threads = 1};
  const auto more = [&](pass_room with) { return (pass_bytes(of, with) - pass_bytes(of, room)) / sizeof(float); };
  const auto number = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  pass_room other = room;
  other.rows = 65;
  EXPECT_GE(more(other), number(6 * of.hidden + 2 * of.heads * of.head_dim + 2 * of.ffn));
  other = room, other.sequences = 5;
  EXPECT_EQ(more(other), number(of.vocab_size));
  other = room, other.guesses = 2;
  EXPECT_EQ(more(other), number(4 * 2 * of.vocab_size));
  other = room, other.threads = 3;
  EXPECT_EQ(more(other), number(2 * attention_scratch(128, of.head_dim)));
}

TEST(model_memory, has_room_for_what_only_some_models_have) {
  const pass_room room{.rows = 64, .sequences = 4, .guesses = 0, .context = 128, .threads = 1};
  const auto pass_of = [&](const model_config& config) { return pass_bytes(config, room); };
  model_config of = load_for_test(golden / "qwen3-moe", scheme::u8)->config;
  const std::uint64_t mixture = pass_of(of);
  of.experts.taken *= 2;
  EXPECT_GT(pass_of(of), mixture);
  of = load_for_test(golden / "deepseek2", scheme::u8)->config;
  const std::uint64_t latent = pass_of(of);
  of.latent.rank *= 2;
  EXPECT_GT(pass_of(of), latent);
  of = load_for_test(golden / "lfm2", scheme::u8)->config;
  const std::uint64_t convolved = pass_of(of);
  of.mixers.clear();
  EXPECT_EQ(convolved - pass_of(of), static_cast<std::uint64_t>(64 * 4 * of.hidden) * sizeof(float));
}

}  // namespace
}  // namespace troupe
