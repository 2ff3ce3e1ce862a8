#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/half.hpp"
#include "base/to_size.hpp"
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
    case scheme::u4g32:
      return (high - low) * 0.12 + most / 2000;  // likewise; the mid is rounded
    case scheme::mxfp4:
      return most * 0.2501;  // what is just below eight is cut off to six
  }
  return 0;
}

TEST(pack, keeps_every_weight_within_half_a_level) {
  random_data random(11);
  for (const scheme kind : all_schemes)
    for (const auto& [outs, ins] : {std::pair{1, 1}, {16, 64}, {33, 100}, {70, 257}}) {
      const random_matrix matrix(random, kind, outs, ins);
      std::vector<float> row(to_size(ins));
      for (int out = 0; out < outs; ++out) {
        unpack_row(matrix.view, out, row.data());
        const float* original = matrix.weights.data() + out * ins;
        for (int i = 0; i < ins; ++i)
          ASSERT_NEAR(row[to_size(i)], original[i], most_error(kind, original, ins)) << name_of(kind);
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
  for (const scheme kind : {scheme::u8, scheme::u8g64, scheme::u4g32}) {
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

/// A row of u4g32, packed and read back.
std::vector<float> in_lines_of_four_bits(const std::vector<float>& row) {
  const auto n = static_cast<std::int64_t>(row.size());
  aligned_buffer<std::byte> memory(packed_bytes(scheme::u4g32, 1, n).total());
  coded_row coded;
  encode_row(scheme::u4g32, row.data(), n, coded);
  matrix_packer(scheme::u4g32, 1, n, memory.data()).put(0, coded);
  std::vector<float> back(row.size());
  unpack_row(view_of(scheme::u4g32, 1, n, memory.data()), 0, back.data());
  return back;
}

TEST(pack, takes_groups_of_any_kind_in_lines_of_four_bits) {
  std::vector<float> outlier(32, 0.01f), far(32), large(32);
  outlier[5] = 1;
  for (std::size_t i = 0; i < 32; ++i) {
    far[i] = 10 + 0.1f * static_cast<float>(i) / 31;
    large[i] = 60000 - 200 * static_cast<float>(i);
  }
  for (const auto& row : {std::vector<float>(32, 0.0f), std::vector{0.3f}, outlier, far, large}) {
    const auto [low, high] = std::minmax_element(row.begin(), row.end());
    const auto back = in_lines_of_four_bits(row);
    for (std::size_t i = 0; i < row.size(); ++i)
      EXPECT_NEAR(back[i], row[i], (*high - *low) / 30 + *high / 2048) << row.front() << " … " << row.back();
  }
}

TEST(pack, loses_little_to_four_bits) {
  random_data random(14);
  for (const auto& [kind, most] : {std::pair{scheme::q4, 0.0825}, {scheme::u4g32, 0.0725}}) {
    const random_matrix matrix(random, kind, 32, 512);
    std::vector<float> row(512);
    double lost = 0, all = 0;
    for (std::size_t out = 0; out < 32; ++out) {
      unpack_row(matrix.view, static_cast<std::int64_t>(out), row.data());
      for (std::size_t i = 0; i < row.size(); ++i) {
        const double weight = matrix.weights[out * row.size() + i], off = row[i] - weight;
        lost += off * off, all += weight * weight;
      }
    }
    EXPECT_LT(std::sqrt(lost / all), most) << name_of(kind);
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
    copy_gguf_row(kind == scheme::q8 ? dtype::q8_0 : dtype::q4_0, raw.data(), 96, coded);
    matrix_packer(kind, 1, 96, memory.data()).put(0, coded);
    std::vector<float> back(96);
    unpack_row(view_of(kind, 1, 96, memory.data()), 0, back.data());
    EXPECT_EQ(back, expected) << name_of(kind);
  }
}

/// Random bytes, but the block's own scale and least value are numbers as files have them.
std::vector<std::byte> random_blocks(random_data& random, dtype type, std::size_t count) {
  const auto bytes = to_size(block_of(type).bytes);
  std::vector<std::byte> raw(bytes * count);
  for (auto& byte : raw) byte = static_cast<std::byte>(random.between(0, 255));
  for (std::size_t at = 0; at < raw.size(); at += bytes) {
    const std::uint16_t factors[] = {f32_to_f16(random.value() * 0.001f), f32_to_f16(random.value() * 0.01f)};
    std::memcpy(raw.data() + at, factors, sizeof factors);
  }
  return raw;
}

/// The nibbles of a Q4_1 block follow 4 bytes, those of Q4_K 16; in each 16 or 32 bytes low ones come first.
std::vector<std::uint8_t> nibbles_of(dtype type, const std::vector<std::byte>& raw) {
  const std::size_t half = type == dtype::q4_1 ? 16 : 32, first = type == dtype::q4_1 ? 4 : 16;
  std::vector<std::uint8_t> all;
  for (std::size_t block = 0; block < raw.size(); block += to_size(block_of(type).bytes))
    for (std::size_t at = first; at < to_size(block_of(type).bytes); at += half)
      for (std::size_t i = 0; i < 2 * half; ++i)
        all.push_back(
            static_cast<std::uint8_t>(static_cast<int>(raw[block + at + i % half]) >> (i < half ? 0 : 4) & 15));
  return all;
}

TEST(pack, takes_every_nibble_of_gguf_rows_and_rounds_scales_and_mids_to_f16) {
  random_data random(13);
  constexpr std::int64_t n = 512;
  for (const dtype type : {dtype::q4_1, dtype::q4_k})
    for (int round = 0; round < 20; ++round) {
      const auto raw = random_blocks(random, type, to_size(n / block_of(type).elements));
      std::vector<float> expected(n), back(n);
      to_floats(type, raw.data(), n, expected.data());
      coded_row coded;
      copy_gguf_row(type, raw.data(), n, coded);
      EXPECT_EQ(coded.z, nibbles_of(type, raw));
      aligned_buffer<std::byte> memory(packed_bytes(scheme::u4g32, 1, n).total());
      matrix_packer(scheme::u4g32, 1, n, memory.data()).put(0, coded);
      unpack_row(view_of(scheme::u4g32, 1, n, memory.data()), 0, back.data());
      for (std::size_t i = 0; i < n; ++i) {
        const float largest = std::fabs(coded.mids[i / 32]) + 8 * std::fabs(coded.scales[i / 32]);
        ASSERT_NEAR(back[i], expected[i], largest / 2048 + 1e-7) << name_of(type) << " at " << i;
      }
    }
}

/// What a row of mxfp4 reads as once it is packed.
std::vector<float> packed_and_read(const coded_row& coded, std::int64_t n) {
  aligned_buffer<std::byte> memory(packed_bytes(scheme::mxfp4, 1, n).total());
  matrix_packer(scheme::mxfp4, 1, n, memory.data()).put(0, coded);
  std::vector<float> back(to_size(n));
  unpack_row(view_of(scheme::mxfp4, 1, n, memory.data()), 0, back.data());
  return back;
}

/// The largest weight has the exponent of four times the scale: here both groups' largest decides. Ties go to the even
/// one, what is beyond six is cut off.
TEST(pack, quantizes_to_mxfp4_as_its_specification_says) {
  std::vector<float> row(64, 0.0f), expected(64, 0.0f);
  const std::pair<float, float> as_is[] = {{7.5f, 6},   {0.25f, 0}, {0.26f, 0.5f},  {0.75f, 1},
                                           {1.25f, 1},  {1.75f, 2}, {-1.3f, -1.5f}, {2.5f, 2},
                                           {-3.5f, -4}, {5, 4},     {-5.1f, -6},    {-0.2f, 0}};
  for (std::size_t i = 0; i < std::size(as_is); ++i) {
    row[i] = as_is[i].first, expected[i] = as_is[i].second;
    row[32 + i] = as_is[i].first / 1024, expected[32 + i] = as_is[i].second / 1024;
  }
  coded_row coded;
  encode_row(scheme::mxfp4, row.data(), 64, coded);
  EXPECT_EQ(coded.scales, (std::vector{1.0f, 1.0f / 1024}));
  EXPECT_EQ(packed_and_read(coded, 64), expected);
}

/// A block of GGUF for each exponent: each level of each of them but of those whose largest weight is below 2^-123.
TEST(pack, takes_every_exponent_of_mxfp4) {
  for (int exponent = 0; exponent < 255; ++exponent) {
    std::vector<std::byte> block{static_cast<std::byte>(exponent)};
    for (int i = 0; i < 16; ++i) block.push_back(static_cast<std::byte>(i | (15 - i) << 4));
    std::vector<float> expected(32);
    to_floats(dtype::mxfp4, block.data(), 32, expected.data());
    if (exponent < 2) expected.assign(32, 0.0f);
    coded_row coded;
    copy_gguf_row(dtype::mxfp4, block.data(), 32, coded);
    EXPECT_EQ(packed_and_read(coded, 32), expected) << exponent;
  }
}

TEST(pack, keeps_what_is_not_a_number_in_mxfp4_from_becoming_one) {
  const std::vector<float> back = packed_and_read({std::vector<std::uint8_t>(64, 0), {NAN, 1.0f}, {0.0f, 0.0f}}, 64);
  EXPECT_TRUE(std::isnan(back[0]));
  EXPECT_EQ(back[32], 0.0f);
}

TEST(pack, refuses_an_unknown_scheme_by_name) {
  EXPECT_THROW(scheme_from_name("q5", "--quant"), input_error);
  for (const scheme kind : all_schemes) EXPECT_EQ(scheme_from_name(name_of(kind), "x"), kind);
}

}  // namespace
}  // namespace troupe
