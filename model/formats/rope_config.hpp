#pragma once
#include <cstdint>
#include <vector>

namespace troupe {

enum class rope_scaling : std::uint8_t { none, linear, llama3, yarn, longrope };

/// Pairs that turn more than beta_fast times within the original context keep their frequency, those that turn less
/// than beta_slow times are slowed by the factor, those between are blended.
struct yarn_config {
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  ///< the blend begins and ends at whole pairs
  /// Cosines and sines are multiplied by attention_factor * stretch(mscale) / stretch(mscale_all_dim), where stretch(m)
  /// is 1 + 0.1 m ln(factor).
  double attention_factor = 1.0;
  double mscale = 1.0;
  double mscale_all_dim = 0.0;
  /// The scores of latent attention are multiplied by the square of stretch(score_stretch).
  double score_stretch = 0.0;
};

struct rope_config {
  double theta = 10000.0;
  rope_scaling scaling = rope_scaling::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;  // llama3 only, as the next
  double high_freq_factor = 4.0;
  std::int64_t original_context = 8192;  // llama3, yarn and longrope
  yarn_config yarn;
  /// [rotary_dim / 2]: divides the frequency of each pair, as GGUF's rope_freqs.weight gives it; empty: none.
  std::vector<float> frequency_divisors;
  std::vector<float> short_divisors;  ///< longrope: in their place where the context is no longer than the original
  /// longrope: cosines and sines are multiplied by it; 0: by sqrt(1 + ln(factor) / ln(original_context))
  double length = 0.0;
};

}  // namespace troupe
