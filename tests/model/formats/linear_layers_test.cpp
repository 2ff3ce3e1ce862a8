#include "model/formats/linear_layers.hpp"

#include <gtest/gtest.h>

#include "model/formats/row_order.hpp"

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
  config.hidden = 8, config.ffn = 12, config.experts.count = 4;
  EXPECT_EQ(linear_kinds_of(config, 0).size(), 4u);
  config.experts.shared_ffn = 20, config.experts.dense_ffn = 28, config.experts.dense_layers = {true, false};
  EXPECT_EQ(linear_kinds_of(config, 0).size(), 7u);
  EXPECT_EQ(linear_shape(config, 0, linear_kind::up), std::pair(std::int64_t{28}, std::int64_t{8}));
  EXPECT_EQ(linear_shape(config, 1, linear_kind::down), std::pair(std::int64_t{8}, std::int64_t{20}));
}

TEST(linear_layers, of_linear_attention_are_its_own_and_queries_may_come_with_gates) {
  model_config config;
  config.hidden = 8, config.heads = 4, config.kv_heads = 2, config.head_dim = 6, config.ffn = 12;
  config.mixers = {mixer_kind::delta, mixer_kind::attention};
  config.attention_gate = true;
  config.delta = {.key_heads = 2, .value_heads = 4, .key_dim = 16, .value_dim = 32};
  using enum linear_kind;
  EXPECT_EQ(linear_kinds_of(config, 0), (std::vector{delta_qkv, delta_z, delta_b, delta_a, delta_out, gate, up, down}));
  EXPECT_EQ(linear_kinds_of(config, 1), (std::vector{q, k, v, o, gate, up, down}));
  EXPECT_EQ(linear_shape(config, 0, delta_qkv), std::pair(std::int64_t{192}, std::int64_t{8}));
  EXPECT_EQ(linear_shape(config, 0, delta_a), std::pair(std::int64_t{4}, std::int64_t{8}));
  EXPECT_EQ(linear_shape(config, 0, delta_out), std::pair(std::int64_t{8}, std::int64_t{128}));
  EXPECT_EQ(linear_shape(config, 1, linear_kind::q), std::pair(std::int64_t{48}, std::int64_t{8}));
  EXPECT_EQ(linear_shape(config, 1, linear_kind::o), std::pair(std::int64_t{8}, std::int64_t{24}));
}

TEST(linear_layers, of_short_convolutions_are_one_before_them_and_one_behind) {
  model_config config;
  config.hidden = 16, config.ffn = 12;
  config.mixers = {mixer_kind::convolution, mixer_kind::attention};
  using enum linear_kind;
  EXPECT_EQ(linear_kinds_of(config, 0), (std::vector{convolution_in, convolution_out, gate, up, down}));
  EXPECT_EQ(linear_kinds_of(config, 1), (std::vector{q, k, v, o, gate, up, down}));
  EXPECT_EQ(linear_shape(config, 0, convolution_in), std::pair(std::int64_t{48}, std::int64_t{16}));
  EXPECT_EQ(linear_shape(config, 0, convolution_out), std::pair(std::int64_t{16}, std::int64_t{16}));
}

TEST(row_order, puts_neighbours_that_turn_together_half_of_them_apart_and_back) {
  const row_order first = turned_neighbours{.dim = 6, .turned = 4};
  const row_order last = turned_neighbours{.dim = 6, .turned = 4, .turned_last = true};
  const std::vector<float> file{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15};
  EXPECT_EQ(first.in_our_order(file, 1), (std::vector<float>{0, 2, 1, 3, 4, 5, 10, 12, 11, 13, 14, 15}));
  EXPECT_EQ(last.in_our_order(file, 1), (std::vector<float>{2, 4, 3, 5, 0, 1, 12, 14, 13, 15, 10, 11}));
  for (const row_order& each : {first, last}) EXPECT_EQ(each.in_file_order(each.in_our_order(file, 1), 1), file);
}

TEST(row_order, puts_parts_of_heads_behind_each_other_and_back) {
  const row_order all = parts_of_heads{.heads = 2, .parts = {1, 2}};
  const row_order second = parts_of_heads{.heads = 2, .parts = {1, 2, 1}, .first_part = 1};
  const std::vector<float> file{0, 10, 11, 1, 12, 13};
  EXPECT_EQ(all.in_our_order(file, 1), (std::vector<float>{0, 1, 10, 11, 12, 13}));
  EXPECT_EQ(all.in_file_order(all.in_our_order(file, 1), 1), file);
  EXPECT_EQ(all.in_our_order({0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, 2),
            (std::vector<float>{0, 0, 3, 3, 1, 1, 2, 2, 4, 4, 5, 5}));
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < 6; ++row) rows.push_back(second.file_row(row));
  EXPECT_EQ(rows, (std::vector<std::int64_t>{1, 2, 5, 6, 3, 7}));
}

TEST(row_order, lets_groups_of_heads_take_turns_behind_some_rows_and_back) {
  const row_order order = groups_in_turn{.groups = 2, .group_heads = 3, .head_rows = 2, .rows_before = 1};
  const std::vector<float> file{9, 0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51};
  EXPECT_EQ(order.in_our_order(file, 1), (std::vector<float>{9, 0, 1, 30, 31, 10, 11, 40, 41, 20, 21, 50, 51}));
  EXPECT_EQ(order.in_file_order(order.in_our_order(file, 1), 1), file);
}

}  // namespace
}  // namespace troupe
