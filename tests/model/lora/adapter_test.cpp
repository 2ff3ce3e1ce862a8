// Adapters as the kernels read them.
#include "model/lora/adapter.hpp"
#include "base/to_size.hpp"

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
  low_rank_args args{.a = weights.a, .b = weights.b, .scales = weights.scales, .rows = 1};
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
      y += double(part.b[to_size(out * rank + r)]) * part.a[to_size(r * ins + i)] * std::cos(static_cast<float>(i));
  return y * part.scale;
}

/// The largest error in units of the largest output.
double error_of(const adapter_file& file, adapter_precision precision) {
  const auto y = added(lora_adapter(file, 1, precision));
  double most = 0, error = 0;
  for (std::int64_t out = 0; out < outs; ++out) {
    const double wanted = reference(file.parts[0], out);
    most = std::max(most, std::fabs(wanted));
    error = std::max(error, std::fabs(y[to_size(out)] - wanted));
  }
  return error / most;
}

TEST(lora_adapter, keeps_what_the_file_holds_in_sixteen_bits_where_that_is_exact) {
  for (const auto round : {as_f16, as_bf16}) {
    const adapter_file file = some_file(round);
    const lora_adapter adapter(file, 1);
    EXPECT_EQ(adapter.find(0, linear_kind::q)->a.kind, factor_kind::f16);
    EXPECT_EQ(adapter.find(0, linear_kind::q)->b.kind, factor_kind::f16);
    EXPECT_EQ(added(adapter), added(lora_adapter(file, 1, adapter_precision::half)));
    EXPECT_LT(error_of(file, adapter_precision::exact), 1e-6);
  }
}

TEST(lora_adapter, keeps_others_in_f32_unless_fewer_bits_are_asked_for) {
  const adapter_file file = some_file(as_it_is);
  const auto kept = [&](adapter_precision precision, factor_kind kind, double most_error) {
    const lora_adapter adapter(file, 1, precision);
    EXPECT_EQ(adapter.find(0, linear_kind::q)->a.kind, kind);
    EXPECT_EQ(adapter.find(0, linear_kind::q)->b.kind, kind);
    EXPECT_LT(error_of(file, precision), most_error);
    EXPECT_EQ(lora_adapter::packed_bytes(file, precision), adapter.bytes());
    return adapter.bytes();
  };
  const std::size_t in_words = kept(adapter_precision::exact, factor_kind::f32, 1e-6);
  EXPECT_LT(kept(adapter_precision::half, factor_kind::f16, 1e-3), in_words * 6 / 10);
  EXPECT_LT(kept(adapter_precision::byte, factor_kind::i8, 1e-2), in_words * 4 / 10);
}

TEST(lora_adapter, gives_each_rank_its_own_scales_in_bytes) {
  adapter_file file = some_file(as_it_is);
  adapter_part& part = file.parts[0];
  const auto scale_ranks = [&](float first, float others) {
    for (std::size_t i = 0; i < part.a.size(); ++i) part.a[i] *= i < std::size_t(ins) ? first : others;
    for (std::size_t i = 0; i < part.b.size(); ++i) part.b[i] /= i % std::size_t(rank) == 0 ? first : others;
  };
  scale_ranks(1e-6f, 1e6f);
  EXPECT_LT(error_of(file, adapter_precision::byte), 1e-2);
}

TEST(lora_adapter, in_bytes_may_have_ranks_of_nothing_and_of_next_to_nothing) {
  adapter_file file = some_file(as_it_is);
  adapter_part& part = file.parts[0];
  std::fill_n(part.a.begin(), ins, 0.0f);
  std::fill_n(part.a.begin() + ins, ins, 3e-44f);  // of which no 127th part can be told exactly
  EXPECT_LT(error_of(file, adapter_precision::byte), 1e-2);
}

TEST(lora_adapter, is_rounded_as_much_as_its_base) {
  for (const char* as_it_is : {"", "native", "f32"}) EXPECT_EQ(precision_beside(as_it_is), adapter_precision::exact);
  EXPECT_EQ(precision_beside("bf16"), adapter_precision::half);
  for (const char* rounded : {"u8", "u8g64", "q8", "q4", "u4g32", "mxfp4"})
    EXPECT_EQ(precision_beside(rounded), adapter_precision::byte);
}

}  // namespace
}  // namespace troupe
