// What models with linear attention keep beside their weights.
#include <algorithm>

#include "base/to_size.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/arch/state_storage.hpp"
#include "model/arch/stored_scheme.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

TEST(delta_states, begin_anew_at_the_first_position) {
  const auto model = load_for_test(golden / "qwen3.5", scheme::u8);
  thread_pool pool(2);
  single_sequence sequence(model, {}, {pool, kernels()});
  const auto tokens = random_tokens(20, model->config.vocab_size, 3);
  const auto fed = [&](int count) {
    const auto logits = sequence.feed(std::span(tokens).first(to_size(count)));
    return std::vector<float>(logits.begin(), logits.end());
  };
  const auto expected = fed(20);
  sequence.restart();
  EXPECT_NE(fed(1), expected);
  sequence.restart();
  EXPECT_TRUE(same_bits(fed(20), expected));
}

model_config four_layers() {
  model_config config;
  config.layers = 4, config.head_dim = 16, config.kv_heads = 1;
  using enum mixer_kind;
  config.mixers = {delta, attention, delta, attention};
  config.delta = {.key_heads = 1, .value_heads = 2, .key_dim = 16, .value_dim = 32, .kernel = 4};
  return config;
}

TEST(delta_states, lie_apart_by_slot_and_layer) {
  const model_config config = four_layers();
  const std::int64_t floats = config.delta.state_floats();
  EXPECT_EQ(floats, 3 * (16 + 16 + 64) + 16 * 64);
  const state_storage states(config, 0, 4, 3);
  EXPECT_EQ(states.at(0, 2) - states.at(0, 0), 2 * floats);
  EXPECT_EQ(states.at(2, 0) - states.at(0, 0), 3 * floats) << "layers that attend have none";
}

TEST(delta_states, are_copied_in_all_layers) {
  const model_config config = four_layers();
  state_storage states(config, 0, 4, 3);
  for (const std::int64_t layer : {0, 2})
    std::fill_n(states.at(layer, 0), 3 * config.delta.state_floats(), static_cast<float>(layer));
  for (const std::int64_t layer : {0, 2}) std::fill_n(states.at(layer, 1), config.delta.state_floats(), 7.0f);
  states.copy(1, 2);
  for (const std::int64_t layer : {0, 2}) {
    EXPECT_EQ(states.at(layer, 0)[config.delta.state_floats() - 1], static_cast<float>(layer));
    EXPECT_EQ(states.at(layer, 2)[0], 7.0f);
    EXPECT_EQ(states.at(layer, 2)[config.delta.state_floats() - 1], 7.0f);
  }
}

TEST(delta_states, stand_in_place_of_keys_and_values) {
  const model_config config = four_layers();
  const kv_storage all(config, {}, 0, 4, 2, kv_kind::f32), last(config, {}, 2, 2, 2, kv_kind::f32);
  const std::int64_t bytes = all.layer(1).block_bytes;
  EXPECT_EQ(all.layer(3).first - all.layer(1).first, 2 * bytes);
  all.layer(3).first[bytes] = std::byte{7};
  all.copy_block(1, 0);
  EXPECT_EQ(all.layer(3).first[0], std::byte{7});
  last.layer(3).first[2 * bytes - 1] = std::byte{7};  // the only layer that has some
}

TEST(stored_scheme, of_what_linear_attention_decays_and_learns_by_is_f32) {
  EXPECT_EQ(stored_scheme(scheme::q4, "model.layers.0.linear_attn.in_proj_a.weight"), scheme::f32);
  EXPECT_EQ(stored_scheme(scheme::u8, "model.layers.0.linear_attn.in_proj_b.weight"), scheme::f32);
  EXPECT_EQ(stored_scheme(scheme::q4, "model.layers.0.linear_attn.in_proj_qkv.weight"), scheme::q4);
}

}  // namespace
}  // namespace troupe
