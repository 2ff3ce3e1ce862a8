#include "model/ops/rope.hpp"

#include <numbers>

#include "model/ops/elementary.hpp"

namespace troupe {
namespace {

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
  const double ratio = config.head_dim > 1 ? whole_root(rope.theta, config.head_dim / 2) : 1;
  for (std::int64_t i = 0; i < config.head_dim / 2; ++i) {
    // in f32, as the models were trained: the rounding also hides the last bits of the power
    double frequency = static_cast<float>(1.0 / whole_power(ratio, i));
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
