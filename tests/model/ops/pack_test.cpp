#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/half.hpp"
#include "tests/model/ops/random_data.hpp"

namespace troupe {
namespace {

/// The largest distance that rounding to the nearest level allows.
double most_error(scheme kind, const float* row, std::int64_t n) {
  float low = row[0], high = row[0], most = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    low = std::min(low, row[i]), high = std::max(high, row[i]), most = std::max(most, std::fabs(row[i]));
  }
  switch (kind) {
    case scheme::f32:
      return 0;
    case scheme::bf16:
      return most / 256;
    case scheme::u8:
    case scheme::u8g64:
      return (high - low) / 255 * 0.501 + 1e-6;
    case scheme::q8:
      return most / 127 * 0.51 + most / 2000;
    case scheme::q4:
      return most * 0.19;  // the far end may be cut off by a level
  }
  return 0;
}

TEST(pack, keeps_every_weight_within_half_a_level) {
  random_data random(11);
  for (const scheme kind : all_schemes)
    for (const auto& [outs, ins] : {std::pair{1, 1}, {16, 64}, {33, 100}, {70, 257}}) {
      const random_matrix matrix(random, kind, outs, ins);
      std::vector<float> row(static_cast<std::size_t>(ins));
      for (int out = 0; out < outs; ++out) {
        unpack_row(matrix.view, out, row.data());
        const float* original = matrix.weights.data() + out * ins;
        for (int i = 0; i < ins; ++i)
          ASSERT_NEAR(row[static_cast<std::size_t>(i)], original[i], most_error(kind, original, ins)) << name_of(kind);
      }
    }
}

TEST(pack, maps_a_row_from_zero_to_one) {
  const float row[] = {-1.0f, 0.0f, 1.0f, 0.5f};
  coded_row coded;
  encode_row(scheme::u8, row, 4, coded);
  EXPECT_EQ(coded.z[0], 0);
  EXPECT_EQ(coded.z[1], 128);  // 127.5, ties to even
  EXPECT_EQ(coded.z[2], 255);
  EXPECT_EQ(coded.z[3], 191);  // 191.25
}

TEST(pack, takes_a_row_of_equal_weights) {
  for (const scheme kind : {scheme::u8, scheme::u8g64}) {
    aligned_buffer<std::byte> memory(packed_bytes(kind, 1, 70).total());
    const std::vector<float> row(70, 0.25f);
    coded_row coded;
    encode_row(kind, row.data(), 70, coded);
    matrix_packer(kind, 1, 70, memory.data()).put(0, coded);
    std::vector<float> back(70);
    unpack_row(view_of(kind, 1, 70, memory.data()), 0, back.data());
    EXPECT_EQ(back, row);
  }
}

/// 32 numbers as GGUF stores them.
TEST(pack, takes_gguf_rows_without_loss) {
  random_data random(12);
  for (const scheme kind : {scheme::q8, scheme::q4}) {
    const std::size_t block = kind == scheme::q8 ? 34 : 18;
    std::vector<std::byte> raw(block * 3);
    std::vector<float> expected;
    for (std::size_t g = 0; g < 3; ++g) {
      const std::uint16_t scale = f32_to_f16(random.value());
      std::memcpy(raw.data() + g * block, &scale, 2);
      auto* bytes = reinterpret_cast<std::uint8_t*>(raw.data() + g * block + 2);
      for (std::size_t i = 0; i < block - 2; ++i) bytes[i] = static_cast<std::uint8_t>(random.between(0, 255));
      for (std::size_t i = 0; i < 32; ++i) {
        const int q = kind == scheme::q8 ? static_cast<std::int8_t>(bytes[i])
                      : i < 16           ? (bytes[i] & 15) - 8
                                         : (bytes[i - 16] >> 4) - 8;
        expected.push_back(static_cast<float>(q) * f16_to_f32(scale));
      }
    }
    aligned_buffer<std::byte> memory(packed_bytes(kind, 1, 96).total());
    coded_row coded;
    copy_gguf_row(kind, raw.data(), 96, coded);
    matrix_packer(kind, 1, 96, memory.data()).put(0, coded);
    std::vector<float> back(96);
    unpack_row(view_of(kind, 1, 96, memory.data()), 0, back.data());
    EXPECT_EQ(back, expected) << name_of(kind);
  }
}

TEST(pack, refuses_an_unknown_scheme_by_name) {
  EXPECT_THROW(scheme_from_name("q5", "--quant"), input_error);
  for (const scheme kind : all_schemes) EXPECT_EQ(scheme_from_name(name_of(kind), "x"), kind);
}

}  // namespace
}  // namespace troupe
