#include "model/train/passes/routed_experts.hpp"
#include "base/to_size.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/ops/isa.hpp"
#include "model/train/parameters/master_weights.hpp"
#include "model/train/passes/train_pass.hpp"
#include "tests/model/same_bits.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// What the last layer's experts make of random rows, and the gradients of those for random ones of what they make.
std::vector<float> there_and_back(const trained_model& model, const compute& with, std::int64_t rows,
                                  std::int64_t at_once) {
  const std::int64_t hidden = model.config.hidden, stride = train_stride(hidden);
  aligned_buffer<float> x(to_size(rows * stride)), dy(x.size()), y(x.size()), dx(x.size());
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const aligned_buffer<float>* drawn : {&x, &dy})
    for (std::int64_t r = 0; r < rows; ++r)
      std::generate_n(drawn->data() + r * stride, hidden, [&] { return normal(random); });
  products body(with, train_precision::fine, at_once, std::max(hidden, model.config.ffn));
  const std::function<void()> between;
  routed_experts experts(model.config, at_once, with, body, between);
  const trained_layer& layer = model.layers.back();
  const const_float_rows in{x.data(), stride};
  const float_rows gradient{dx.data(), stride};
  experts.forward(layer, {in, in}, rows, {y.data(), stride});
  experts.backward(layer, {in, in}, rows, {dy.data(), stride}, {gradient, gradient});
  std::vector<float> made(y.data(), y.data() + y.size());
  made.insert(made.end(), dx.data(), dx.data() + dx.size());
  return made;
}

TEST(routed_experts, give_the_same_bits_however_many_rows_go_through_together) {
  thread_pool pool(2);
  const compute with{pool, kernels()};
  for (const char* name : {"qwen3-moe", "mixtral", "gpt-oss", "glm4-moe"})
    for (const scheme quant : {scheme::f32, scheme::u8}) {
      const trained_model model = frozen(load_golden(name, pool, quant));
      const std::vector<float> whole = there_and_back(model, with, 700, 700);
      EXPECT_TRUE(same_bits(whole, there_and_back(model, with, 700, 33))) << name;
    }
}

TEST(routed_experts, give_the_same_bits_by_any_instruction_set_and_number_of_threads) {
  thread_pool one(1);
  for (const char* name : {"qwen3-moe", "mixtral", "gpt-oss", "glm4-moe"}) {
    const trained_model model = frozen(load_golden(name, one, scheme::u8));
    const std::vector<float> usual = there_and_back(model, {one, kernels()}, 75, 75);
    for (const kernel_table* table : available_kernels())
      for (const int threads : {1, 3}) {
        thread_pool pool(threads);
        EXPECT_TRUE(same_bits(there_and_back(model, {pool, *table}, 75, 75), usual)) << name << " " << threads;
      }
  }
}

TEST(routed_experts, take_so_many_bytes_however_many_rows) {
  thread_pool pool(1);
  const auto base = load_golden("qwen3-moe", pool);
  EXPECT_EQ(routed_experts::bytes(base->config, 1 << 20), routed_experts::bytes(base->config, 512));
}

TEST(growing_queries, are_not_trained) {
  thread_pool pool(1);
  const trained_model model = frozen(load_golden("ministral3", pool));
  const parameter_set none;
  const auto make = [&](std::int64_t positions) {
    make_train_pass(model, none, {pool, kernels()}, {.most_rows = 64, .most_positions = positions});
  };
  make(16);
  EXPECT_THAT([&] { make(17); }, ThrowsMessage<input_error>(HasSubstr("beyond 16 the model's queries grow")));
}

TEST(mixtures_of_experts, are_not_trained_on_gpus) {
  thread_pool pool(1);
  const trained_model model = frozen(load_golden("mixtral", pool));
  const parameter_set none;
  EXPECT_THAT(
      [&] {
        make_train_pass(model, none, {pool, kernels()}, {.device = device_id{0}});
      },
      ThrowsMessage<input_error>(HasSubstr("cuda:0: the model is a mixture of experts")));
}

TEST(mixtures_of_experts, do_not_learn_all_their_weights) {
  EXPECT_THAT([] { master_weights(golden("qwen3-moe")); },
              ThrowsMessage<input_error>(HasSubstr("is a mixture of experts")));
}

}  // namespace
}  // namespace troupe
