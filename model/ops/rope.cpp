#include "model/ops/rope.hpp"

#include <cmath>
#include <numbers>

namespace troupe {
namespace {

// The angle is reduced to [-pi/4, pi/4] around a multiple of pi/2 (in two parts: exact for positions in the millions),
// then Taylor's series to the last term that a double feels.
struct sine_cosine {
  double sine, cosine;
};

double series(double first, double x2, int start, int terms) {
  double term = first, sum = first;
  for (int i = 0, n = start; i < terms; ++i, n += 2) {
    term = -term * x2 / static_cast<double>(n * (n + 1));
    sum += term;
  }
  return sum;
}

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

/// Llama 3.1's stretching: long waves are slowed by `factor`, short ones kept, those between blended.
double llama3_scaled(double frequency, const rope_config& rope) {
  const double wavelength = 2 * std::numbers::pi / frequency, original = static_cast<double>(rope.original_context);
  if (wavelength < original / rope.high_freq_factor) return frequency;
  if (wavelength > original / rope.low_freq_factor) return frequency / rope.factor;
  const double smooth = (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
  return (1 - smooth) * frequency / rope.factor + smooth * frequency;
}

}  // namespace

rope_angles::rope_angles(const model_config& config) {
  const rope_config& rope = config.rope;
  for (std::int64_t i = 0; i < config.head_dim / 2; ++i) {
    // in f32, as the models were trained: the rounding also hides the last bits of the library's pow
    double frequency = static_cast<float>(
        1.0 / std::pow(rope.theta, 2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim)));
    if (rope.scaling == rope_scaling::linear) frequency = static_cast<float>(frequency / rope.factor);
    if (rope.scaling == rope_scaling::llama3) frequency = static_cast<float>(llama3_scaled(frequency, rope));
    if (!rope.frequency_divisors.empty())
      frequency = static_cast<float>(frequency / rope.frequency_divisors[static_cast<std::size_t>(i)]);
    frequencies_.push_back(frequency);
  }
}

void rope_angles::at(std::int64_t position, float* cosines, float* sines) const {
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    const auto [s, c] = sine_cosine_of(static_cast<double>(position) * frequencies_[i]);
    cosines[i] = static_cast<float>(c);
    sines[i] = static_cast<float>(s);
  }
}

}  // namespace troupe
