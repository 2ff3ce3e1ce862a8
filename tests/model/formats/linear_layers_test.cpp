#include "model/formats/linear_layers.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(linear_layers, are_found_by_their_names) {
  linear_layers<linear_kind> layer{};
  for (const linear_kind kind : every_linear) layer[kind] = kind;
  EXPECT_EQ(layer.k, linear_kind::k);
  EXPECT_EQ(layer.down, linear_kind::down);
  EXPECT_EQ(linear_from_name("mlp.up_proj"), linear_kind::up);
  EXPECT_EQ(linear_from_name("mlp.side_proj"), std::nullopt);
  EXPECT_EQ(linear_name(3, linear_kind::q), "model.layers.3.self_attn.q_proj");
}

TEST(linear_layers, have_a_shape_each) {
  model_config config;
  config.hidden = 8, config.heads = 4, config.kv_heads = 2, config.head_dim = 6, config.ffn = 12;
  const auto shape = [&](std::int64_t layer, linear_kind kind) { return linear_shape(config, layer, kind); };
  EXPECT_EQ(linear_kinds_of(config, 0).size(), 7u);
  EXPECT_EQ(shape(0, linear_kind::q), std::pair(std::int64_t{24}, std::int64_t{8}));
  EXPECT_EQ(shape(0, linear_kind::k), std::pair(std::int64_t{12}, std::int64_t{8}));
  EXPECT_EQ(shape(0, linear_kind::o), std::pair(std::int64_t{8}, std::int64_t{24}));
  EXPECT_EQ(shape(0, linear_kind::down), std::pair(std::int64_t{8}, std::int64_t{12}));
  config.gated_mlp = false;
  EXPECT_EQ(linear_kinds_of(config, 0).size(), 6u);
}

TEST(linear_layers, of_a_mixture_are_an_mlp_where_all_tokens_go_through_one) {
  model_config config;
  config.hidden = 8, config.ffn = 12, config.experts = 4;
  EXPECT_EQ(linear_kinds_of(config, 0).size(), 4u);
  config.shared_ffn = 20, config.dense_ffn = 28, config.dense_layers = {true, false};
  EXPECT_EQ(linear_kinds_of(config, 0).size(), 7u);
  EXPECT_EQ(linear_shape(config, 0, linear_kind::up), std::pair(std::int64_t{28}, std::int64_t{8}));
  EXPECT_EQ(linear_shape(config, 1, linear_kind::down), std::pair(std::int64_t{8}, std::int64_t{20}));
}

}  // namespace
}  // namespace troupe
