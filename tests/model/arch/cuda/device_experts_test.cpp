// Mixtures of experts in a device's memory: passes that go through them in pieces, and what is refused.
#include "model/arch/cuda/device_experts.hpp"

#include "base/error.hpp"
#include "model/arch/cuda/device_weights.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/model/ops/cuda/on_device.hpp"

namespace troupe {
namespace {

class device_experts_of_a_layer : public testing::TestWithParam<scheme> {
 protected:
  static constexpr int rows = 90;
  void SetUp() override {
    skip_without_gpu();
    if (!IsSkipped()) cuda::use_device(first_gpu.gpu);
  }

  /// What is added to rows, the last of which only fills the pass up.
  std::vector<float> mixed(int rows_together) const {
    const auto model = load_for_test(golden / "mixtral", GetParam());
    const std::int64_t hidden = model->config.hidden, stride = padded_row(hidden);
    const cuda::stream on;
    const device_weights weights(*model, 0, 1, on);
    const device_experts experts(model->config, weights.layers, rows_together);
    random_data random(5);
    const cuda::device_array<float> normed(cuda::random_rows(random, rows, hidden, stride)),
        sums(std::vector<float>(std::size_t(rows * stride)));
    std::vector<std::int32_t> positions(rows, 0);
    positions.back() = -1;
    const cuda::device_array<std::int32_t> where(positions);
    const cuda::coded_rows codes(rows, hidden);
    const float_rows in{normed.data(), stride};
    const auto wanted = device_experts::codes_for(weights.layers.front(), codes);
    cuda::encode(on, in, rows, hidden, wanted);
    experts.mix(on, weights.layers.front(), {rows, where.data(), in, wanted, {sums.data(), stride}});
    on.wait();
    return sums.read();
  }
};

TEST_P(device_experts_of_a_layer, give_the_same_bits_in_pieces_of_any_size) {
  const auto whole = mixed(rows);
  EXPECT_TRUE(std::any_of(whole.begin(), whole.end(), [](float v) { return v != 0; }));
  for (const int pieces : {60, 33, 7}) EXPECT_TRUE(same_bits(mixed(pieces), whole)) << "pieces of " << pieces;
}

INSTANTIATE_TEST_SUITE_P(schemes, device_experts_of_a_layer,
                         testing::Values(scheme::f32, scheme::bf16, scheme::u8, scheme::u4g32),
                         [](const auto& info) { return std::string(name_of(info.param)); });

model_config mixture_of(std::int64_t hidden, std::int64_t ffn, std::int64_t experts, std::int64_t taken) {
  model_config config;
  config.hidden = hidden, config.ffn = ffn, config.experts.count = experts, config.experts.taken = taken;
  return config;
}

TEST(rows_through_experts, are_a_whole_pass_of_usual_size_and_pieces_of_a_larger_one) {
  const auto qwen3_30b = mixture_of(2048, 768, 128, 8), mixtral_8x7b = mixture_of(4096, 14336, 8, 2);
  EXPECT_EQ(device_experts::rows_together(qwen3_30b, 2048), 2048);
  EXPECT_EQ(device_experts::rows_together(mixtral_8x7b, 2048), 2048);
  EXPECT_EQ(device_experts::rows_together(mixtral_8x7b, 8192), 2048);
  EXPECT_EQ(device_experts::rows_together(mixtral_8x7b, 7), 7);
}

}  // namespace
}  // namespace troupe
