#include "model/formats/linear_layers.hpp"

#include <gmock/gmock.h>

#include "tests/model/formats/fixtures.hpp"

namespace troupe {
namespace {

using test::refusal;
using ::testing::HasSubstr;

TEST(linear_layers, are_found_by_their_names) {
  linear_layers<linear_kind> layer{};
  for (const linear_kind kind : every_linear) layer[kind] = kind;
  EXPECT_EQ(layer.k, linear_kind::k);
  EXPECT_EQ(layer.down, linear_kind::down);
  EXPECT_EQ(linear_from_name("mlp.up_proj"), linear_kind::up);
  EXPECT_EQ(linear_from_name("mlp.side_proj"), std::nullopt);
}

TEST(linear_layers, have_a_shape_each) {
  model_config config;
  config.hidden = 8, config.heads = 4, config.kv_heads = 2, config.head_dim = 6, config.ffn = 12;
  EXPECT_EQ(linear_modules(config).size(), 7u);
  EXPECT_EQ(linear_shape(config, "self_attn.q_proj"), std::pair(std::int64_t{24}, std::int64_t{8}));
  EXPECT_EQ(linear_shape(config, "self_attn.k_proj"), std::pair(std::int64_t{12}, std::int64_t{8}));
  EXPECT_EQ(linear_shape(config, "self_attn.o_proj"), std::pair(std::int64_t{8}, std::int64_t{24}));
  EXPECT_EQ(linear_shape(config, "mlp.down_proj"), std::pair(std::int64_t{8}, std::int64_t{12}));
  config.gated_mlp = false;
  EXPECT_EQ(linear_modules(config).size(), 6u);
  EXPECT_THAT(refusal([&] { linear_shape(config, "mlp.gate_proj"); }), HasSubstr("mlp.gate_proj"));
}

}  // namespace
}  // namespace troupe
