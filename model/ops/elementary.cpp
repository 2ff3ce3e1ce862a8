#include "model/ops/elementary.hpp"

#include <cmath>
#include <cstdint>
#include <numbers>

namespace troupe {
namespace {

double series(double first, double x2, int start, int terms) {
  double term = first, sum = first;
  for (int i = 0, n = start; i < terms; ++i, n += 2) {
    term = -term * x2 / static_cast<double>(n * (n + 1));
    sum += term;
  }
  return sum;
}

}  // namespace

/// The angle is reduced to [-pi/4, pi/4] around a multiple of pi/2 (in two parts: exact for positions in the millions),
/// then Taylor's series to the last term that a double feels.
sine_cosine sine_cosine_of(double angle) {
  constexpr double high = 0x1.921fb54400000p+0, low = 0x1.0b4611a626331p-34;  // pi / 2
  const double turns = std::nearbyint(angle / (std::numbers::pi / 2));
  const double x = (angle - turns * high) - turns * low;
  const double s = series(x, x * x, 2, 10), c = series(1.0, x * x, 1, 10);
  switch (static_cast<std::int64_t>(turns) & 3) {
    case 0:
      return {s, c};
    case 1:
      return {c, -s};
    case 2:
      return {-s, -c};
    default:
      return {-c, s};
  }
}

double whole_power(double x, std::int64_t n) {
  double power = 1;
  for (double square = x; n > 0; n /= 2, square *= square)
    if (n % 2 == 1) power *= square;
  return power;
}

double whole_root(double power, std::int64_t n) {
  double low = 1, high = power;
  while (true) {
    const double middle = low + (high - low) / 2;
    if (middle <= low || middle >= high) return low;
    (whole_power(middle, n) < power ? low : high) = middle;
  }
}

}  // namespace troupe
