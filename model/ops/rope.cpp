#include "model/ops/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/logarithm.hpp"
#include "base/to_size.hpp"
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

/// Which pair, between whole ones too, turns so often within the original context.
double pair_turning(double turns, const rope_config& rope, double dim) {
  const double original = static_cast<double>(rope.original_context);
  return dim * logarithm(original / (turns * 2 * std::numbers::pi)) / (2 * logarithm(rope.theta));
}

double yarn_scaled(double frequency, std::int64_t pair, const rope_config& rope, std::int64_t dim) {
  const yarn_config& yarn = rope.yarn;
  double first = pair_turning(yarn.beta_fast, rope, static_cast<double>(dim));
  double last = pair_turning(yarn.beta_slow, rope, static_cast<double>(dim));
  if (yarn.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, static_cast<double>(dim - 1));
  if (first == last) last += 0.001;
  const double slowed = std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
  return slowed * frequency / rope.factor + (1 - slowed) * frequency;
}

double yarn_length(const rope_config& rope) {
  const auto stretch = [&](double mscale) { return 1 + 0.1 * mscale * logarithm(rope.factor); };
  return rope.yarn.attention_factor * stretch(rope.yarn.mscale) / stretch(rope.yarn.mscale_all_dim);
}

double longrope_length(const rope_config& rope) {
  if (rope.length > 0) return rope.length;
  if (rope.factor <= 1 || rope.original_context < 2) return 1;
  return std::sqrt(1 + logarithm(rope.factor) / logarithm(static_cast<double>(rope.original_context)));
}

}  // namespace

rope_angles::rope_angles(const rope_config& rope, std::int64_t dim, std::int64_t context) {
  if (rope.scaling == rope_scaling::yarn) length_ = yarn_length(rope);
  if (rope.scaling == rope_scaling::longrope) length_ = longrope_length(rope);
  const bool is_short = rope.scaling == rope_scaling::longrope && context <= rope.original_context;
  const std::vector<float>& divisors = is_short ? rope.short_divisors : rope.frequency_divisors;
  const double ratio = dim > 1 ? whole_root(rope.theta, dim / 2) : 1;
  for (std::int64_t i = 0; i < dim / 2; ++i) {
    // in f32, as the models were trained: the rounding also hides the last bits of the power
    double frequency = static_cast<float>(1.0 / whole_power(ratio, i));
    if (rope.scaling == rope_scaling::linear) frequency = static_cast<float>(frequency / rope.factor);
    if (rope.scaling == rope_scaling::llama3) frequency = static_cast<float>(llama3_scaled(frequency, rope));
    if (rope.scaling == rope_scaling::yarn) frequency = static_cast<float>(yarn_scaled(frequency, i, rope, dim));
    if (!divisors.empty()) frequency = static_cast<float>(frequency / divisors[to_size(i)]);
    frequencies_.push_back(frequency);
  }
}

void rope_angles::at(std::int64_t position, float* cosines, float* sines) const {
  for (std::size_t i = 0; i < frequencies_.size(); ++i) {
    const auto [s, c] = sine_cosine_of(static_cast<double>(position) * frequencies_[i]);
    cosines[i] = static_cast<float>(c * length_);
    sines[i] = static_cast<float>(s * length_);
  }
}

float query_factor(const model_config& config, std::int64_t position) {
  if (config.query_growth == 0 || position < config.rope.original_context) return 1;
  const auto times = static_cast<double>(position / config.rope.original_context);
  return static_cast<float>(1 + config.query_growth * logarithm(1 + times));
}

}  // namespace troupe
