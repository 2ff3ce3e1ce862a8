#include "base/half.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace troupe {
namespace {

float bits(std::uint32_t value) {
  return std::bit_cast<float>(value);
}

/// By the definition of the format, in doubles.
double f16_value(std::uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const double sign = half >> 15 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  if (exponent == 31) return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * INFINITY;
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(half, every_f16_widens_to_its_value) {
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const auto wanted = f16_value(static_cast<std::uint16_t>(half));
    const float got = f16_to_f32(static_cast<std::uint16_t>(half));
    if (std::isnan(wanted))
      EXPECT_TRUE(std::isnan(got)) << half;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(static_cast<float>(wanted))) << half;
  }
}

TEST(half, every_f8_widens_to_its_value) {
  for (int bits = 0; bits < 256; ++bits) {
    const int exponent = bits >> 3 & 15, mantissa = bits & 7;
    const double sign = bits >> 7 ? -1.0 : 1.0;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    const float got = f8_to_f32(static_cast<std::uint8_t>(bits));
    if ((bits & 127) == 127)
      EXPECT_TRUE(std::isnan(got)) << bits;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(static_cast<float>(sign * magnitude)))
          << bits;
  }
}

TEST(half, every_f16_comes_back_from_f32) {
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const auto wanted = static_cast<std::uint16_t>(half);
    const auto got = f32_to_f16(f16_to_f32(wanted));
    if ((half & 0x7fff) > 0x7c00)
      EXPECT_EQ(got, half | 0x200) << half;
    else
      EXPECT_EQ(got, wanted) << half;
  }
}

TEST(half, f16_rounds_to_the_nearest_and_ties_to_even) {
  for (std::uint32_t half = 0; half < 0x7bff; ++half) {
    const double low = f16_value(static_cast<std::uint16_t>(half)),
                 high = f16_value(static_cast<std::uint16_t>(half + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    EXPECT_EQ(f32_to_f16(middle), half % 2 == 0 ? half : half + 1) << half;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0f)), half) << half;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, INFINITY)), half + 1) << half;
    EXPECT_EQ(f32_to_f16(-middle), 0x8000 | (half % 2 == 0 ? half : half + 1)) << half;
  }
}

TEST(half, f16_overflows_to_infinity_and_keeps_nan) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-INFINITY), 0xfc00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::max()), 0x7c00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(bits(0x7f800001)))));
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(-NAN))));
}

TEST(half, bf16_comes_back_and_rounds_to_even) {
  for (std::uint32_t upper = 0; upper < 65536; ++upper) {
    const auto wanted = static_cast<std::uint16_t>(upper);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(bf16_to_f32(wanted)), upper << 16);
    if ((upper & 0x7fff) > 0x7f80)
      EXPECT_EQ(f32_to_bf16(bf16_to_f32(wanted)), upper | 0x40);
    else
      EXPECT_EQ(f32_to_bf16(bf16_to_f32(wanted)), wanted);
  }
  EXPECT_EQ(f32_to_bf16(bits(0x3f808000)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(bits(0x3f808001)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(bits(0x3f818000)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(bits(0x7f7fffff)), 0x7f80);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(bits(0x7f800001)))));
}

TEST(half, the_floats_of_mxfp4_are_those_of_its_specification) {
  constexpr float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  for (std::uint8_t code = 0; code < 16; ++code)
    EXPECT_EQ(e2m1_to_f32(code), code < 8 ? magnitudes[code] : -magnitudes[code - 8]);
  for (int exponent = 0; exponent < 255; ++exponent)
    EXPECT_EQ(e8m0_to_f32(static_cast<std::uint8_t>(exponent)), std::ldexp(1.0f, exponent - 127));
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
}

}  // namespace
}  // namespace troupe
