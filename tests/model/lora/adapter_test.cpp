// Adapters as the kernels read them.
#include "model/lora/adapter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "model/ops/isa.hpp"
#include "tests/model/rounded.hpp"

namespace troupe {
namespace {

constexpr std::int64_t rank = 5, ins = 70, outs = 100;

/// Random factors as a file in f16 or bf16 holds them, or one in f32.
adapter_file some_file(float (*round)(float)) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0.0f, 0.01f);
  adapter_part part{.layer = 0, .kind = linear_kind::q, .rank = rank, .scale = 1.5f, .a = {}, .b = {}};
  for (int i = 0; i < rank * ins; ++i) part.a.push_back(round(normal(random)));
  for (int i = 0; i < rank * outs; ++i) part.b.push_back(round(normal(random)));
  return {{part}};
}
float as_it_is(float x) {
  return x;
}

/// What the adapter adds for one row.
std::vector<float> added(const lora_adapter& adapter) {
  const lora_weights& weights = *adapter.find(0, linear_kind::q);
  std::vector<float> x(128), between(16), y(112);
  for (std::size_t i = 0; i < ins; ++i) x[i] = std::cos(static_cast<float>(i));
  low_rank_args args{.a = weights.a, .b = weights.b, .scale = weights.scale, .rows = 1};
  args.x = x.data();
  args.between = between.data();
  args.y = y.data();
  kernels().shrink(args);
  kernels().expand(args, 0, weights.b.blocks());
  return y;
}

double reference(const adapter_part& part, std::int64_t out) {
  double y = 0;
  for (std::int64_t r = 0; r < rank; ++r)
    for (std::int64_t i = 0; i < ins; ++i)
      y += double(part.b[static_cast<std::size_t>(out * rank + r)]) * part.a[static_cast<std::size_t>(r * ins + i)] *
           std::cos(static_cast<float>(i));
  return y * part.scale;
}

/// The largest error in units of the largest output.
double error_of(const adapter_file& file, adapter_precision precision) {
  const auto y = added(lora_adapter(file, 1, precision));
  double most = 0, error = 0;
  for (std::int64_t out = 0; out < outs; ++out) {
    const double wanted = reference(file.parts[0], out);
    most = std::max(most, std::fabs(wanted));
    error = std::max(error, std::fabs(y[static_cast<std::size_t>(out)] - wanted));
  }
  return error / most;
}

TEST(lora_adapter, keeps_what_the_file_holds_in_sixteen_bits_where_that_is_exact) {
  for (const auto round : {as_f16, as_bf16}) {
    const adapter_file file = some_file(round);
    const lora_adapter adapter(file, 1);
    EXPECT_TRUE(adapter.find(0, linear_kind::q)->a.half);
    EXPECT_TRUE(adapter.find(0, linear_kind::q)->b.half);
    EXPECT_EQ(added(adapter), added(lora_adapter(file, 1, adapter_precision::half)));
    EXPECT_LT(error_of(file, adapter_precision::exact), 1e-6);
  }
}

TEST(lora_adapter, keeps_others_in_f32_unless_halves_are_asked_for) {
  const adapter_file file = some_file(as_it_is);
  const lora_adapter exact(file, 1), rounded(file, 1, adapter_precision::half);
  EXPECT_FALSE(exact.find(0, linear_kind::q)->a.half);
  EXPECT_TRUE(rounded.find(0, linear_kind::q)->a.half);
  EXPECT_LT(error_of(file, adapter_precision::exact), 1e-6);
  EXPECT_LT(error_of(file, adapter_precision::half), 1e-3);
  EXPECT_LT(rounded.bytes(), exact.bytes() * 6 / 10);
  EXPECT_EQ(lora_adapter::packed_bytes(file), exact.bytes());
  EXPECT_EQ(lora_adapter::packed_bytes(file, adapter_precision::half), rounded.bytes());
}

TEST(lora_adapter, is_kept_in_halves_beside_a_quantized_base_alone) {
  for (const char* as_it_is : {"", "native", "f32"}) EXPECT_EQ(precision_beside(as_it_is), adapter_precision::exact);
  for (const char* rounded : {"u8", "u8g64", "q8", "q4", "u4g32", "mxfp4", "bf16"})
    EXPECT_EQ(precision_beside(rounded), adapter_precision::half);
}

}  // namespace
}  // namespace troupe
