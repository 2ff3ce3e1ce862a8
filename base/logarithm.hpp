#pragma once
#include <bit>
#include <cstdint>
#include <limits>

namespace troupe {

/// The natural logarithm within 2 units in the last place of a double, from additions, products and one division alone:
/// these round alike everywhere, while a library's logarithm may change with the processor.
/// x = m 2^n with m in [sqrt(1/2), sqrt(2)); with s = (m - 1) / (m + 1), log m = 2 (s + s^3/3 + s^5/5 + …).
constexpr double logarithm(double x) {
  if (!(x > 0.0)) return -std::numeric_limits<double>::infinity();
  if (x > std::numeric_limits<double>::max()) return x;
  const bool tiny = x < std::numeric_limits<double>::min();  // subnormal: the exponent is not in its bits
  const auto bits = std::bit_cast<std::uint64_t>(tiny ? x * 0x1p54 : x);
  auto n = static_cast<std::int64_t>(bits >> 52) - 1023 - (tiny ? 54 : 0);
  auto m = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  if (m > 1.4142135623730951) m *= 0.5, ++n;
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double series = 0.0;
  for (int odd = 21; odd >= 3; odd -= 2) series = series * square + 1.0 / odd;
  // ln 2 in two parts: the first has so few bits that its product with n is exact.
  constexpr double ln2 = 6.93147180369123816490e-01, ln2_rest = 1.90821492927058770002e-10;
  const auto power = static_cast<double>(n);
  return power * ln2 + (2.0 * s + (2.0 * s * square * series + power * ln2_rest));
}

}  // namespace troupe
