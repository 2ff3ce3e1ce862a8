#include "model/engine/sampling/candidates.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

constexpr std::size_t block = block_maxima::block;
constexpr float ranges_per_unit = 32.0f;
constexpr float last_range = 1023.0f;
/// The ranges before this one, down to first_depth, have complete sums from the start.
constexpr int first_part = 256;
constexpr float first_depth = -first_part / ranges_per_unit;
/// Adding it leaves a double in [4096, 4097], whose last bit counts 2^-40.
constexpr double unit = 4096.0;
constexpr std::uint64_t unit_bits = std::bit_cast<std::uint64_t>(unit);

std::uint64_t weight_of(float exponential) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(exponential) + unit) - unit_bits;
}

/// Two weights with unit_bits added to each.
__m128i raised_weights_of(__m128 exponentials) {
  return _mm_castpd_si128(_mm_add_pd(_mm_cvtps_pd(exponentials), _mm_set1_pd(unit)));
}

std::uint64_t sum_of_block(const float* exponentials) {
  __m128i low = _mm_setzero_si128(), high = _mm_setzero_si128();
  for (const float* end = exponentials + block; exponentials != end; exponentials += 4) {
    const __m128 e = _mm_load_ps(exponentials);
    low = _mm_add_epi64(low, raised_weights_of(e));
    high = _mm_add_epi64(high, raised_weights_of(_mm_movehl_ps(e, e)));
  }
  std::uint64_t halves[2];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(halves), _mm_add_epi64(low, high));
  return halves[0] + halves[1] - block * unit_bits;  // wraps back to the sum
}

float scaled(float logit, const scaling& scale) {
  const float x = (logit - scale.most) * scale.inverse_temperature;
  return x >= scale.least ? x : minus_infinity;
}

/// scaled() of `n` logits; -inf in the rest of the last block.
void scale_blocks(const float* logits, std::size_t n, const scaling& scale, float* out) {
  const __m128 most = _mm_set1_ps(scale.most), inverse = _mm_set1_ps(scale.inverse_temperature);
  const __m128 least = _mm_set1_ps(scale.least), none = _mm_set1_ps(minus_infinity);
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m128 x = _mm_mul_ps(_mm_sub_ps(_mm_loadu_ps(logits + i), most), inverse);
    const __m128 kept = _mm_cmpge_ps(x, least);
    _mm_store_ps(out + i, _mm_or_ps(_mm_and_ps(kept, x), _mm_andnot_ps(kept, none)));
  }
  for (; i < n; ++i) out[i] = scaled(logits[i], scale);
  for (; i % block != 0; ++i) out[i] = minus_infinity;
}

/// One bit for each of 16 values in (above, to].
unsigned lanes_within(const float* x, __m128 above, __m128 to) {
  const auto within = [&](const float* four) {
    const __m128 values = _mm_load_ps(four);
    return _mm_castps_si128(_mm_and_ps(_mm_cmpgt_ps(values, above), _mm_cmple_ps(values, to)));
  };
  const __m128i low = _mm_packs_epi32(within(x), within(x + 4));
  const __m128i high = _mm_packs_epi32(within(x + 8), within(x + 12));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
}

std::size_t range_of(float x) {
  return static_cast<std::size_t>(std::min(x * -ranges_per_unit, last_range));
}

std::size_t whole_blocks(std::size_t n) {
  return ceil_div(n, block);
}

}  // namespace

few_candidates::few_candidates(const kernel_table& kernels, std::span<const float> logits,
                               std::span<const ranked_token> tokens, const scaling& scale)
    : tokens_(tokens), weights_(tokens.size()) {
  constexpr std::size_t chunk = 256;
  alignas(64) float x[chunk], exponentials[chunk];
  for (std::size_t from = 0; from < tokens.size(); from += chunk) {
    const std::size_t n = std::min(chunk, tokens.size() - from);
    std::fill(x + n, x + chunk, minus_infinity);
    for (std::size_t i = 0; i < n; ++i) x[i] = scaled(logits[to_size(token_of(tokens[from + i]))], scale);
    kernels.exponentials(x, chunk, 0.0f, exponentials);
    for (std::size_t i = 0; i < n; ++i) total_ += weights_[from + i] = weight_of(exponentials[i]);
  }
}

located_token few_candidates::locate(std::uint64_t target) const {
  std::uint64_t before = 0;
  std::size_t i = 0;
  while (before + weights_[i] <= target) before += weights_[i++];
  return {token_of(tokens_[i]), before, before + weights_[i]};
}

void all_candidates::reserve(std::size_t tokens) {
  const std::size_t padded = whole_blocks(tokens) * block;
  if (padded <= x_.size()) return;
  x_ = aligned_buffer<float>(padded);
  exponentials_ = aligned_buffer<float>(padded);
}

void all_candidates::weigh(const kernel_table& kernels, std::span<const float> logits, const block_maxima& maxima,
                           const scaling& scale) {
  reserve(logits.size());
  logits_ = logits;
  weights_.fill(0);
  complete_ = first_part;
  std::uint64_t rest = 0;  // of the blocks whose ranges are not wanted yet
  block_most_.resize(maxima.blocks.size());
  for (std::size_t b = 0; b < block_most_.size(); ++b) block_most_[b] = scaled(maxima.blocks[b], scale);
  constexpr std::size_t chunk = 16 * block;  // stays in the first cache between the passes
  for (std::size_t from = 0; from < logits.size(); from += chunk) {
    const std::size_t n = std::min(chunk, logits.size() - from), padded = whole_blocks(n) * block;
    float *x = x_.data() + from, *exponentials = exponentials_.data() + from;
    scale_blocks(logits.data() + from, n, scale, x);
    kernels.exponentials(x, static_cast<std::int64_t>(padded), 0.0f, exponentials);
    for (std::size_t i = 0; i < padded; i += block) {
      if (block_most_[(from + i) / block] >= first_depth) {
        add_block(from + i);
      } else {
        rest += sum_of_block(exponentials + i);
      }
    }
  }
  total_ = std::accumulate(weights_.begin(), weights_.end(), rest);
}

/// Puts the weights of one block into the sums of their ranges.
void all_candidates::add_block(std::size_t at) {
  const __m128 per_unit = _mm_set1_ps(-ranges_per_unit);
  // What weighs nothing goes to four ranges by turns: to one, each addition would wait for the one before.
  const __m128 last = _mm_setr_ps(last_range - 3, last_range - 2, last_range - 1, last_range);
  alignas(16) std::int32_t range[4];
  alignas(16) std::uint64_t weight[4];
  for (std::size_t i = at; i < at + block; i += 4) {
    const __m128 place = _mm_min_ps(_mm_mul_ps(_mm_load_ps(x_.data() + i), per_unit), last);
    _mm_store_si128(reinterpret_cast<__m128i*>(range), _mm_cvttps_epi32(place));
    const __m128 e = _mm_load_ps(exponentials_.data() + i);
    _mm_store_si128(reinterpret_cast<__m128i*>(weight), raised_weights_of(e));
    _mm_store_si128(reinterpret_cast<__m128i*>(weight + 2), raised_weights_of(_mm_movehl_ps(e, e)));
    weights_[to_size(range[0])] += weight[0] - unit_bits;
    weights_[to_size(range[1])] += weight[1] - unit_bits;
    weights_[to_size(range[2])] += weight[2] - unit_bits;
    weights_[to_size(range[3])] += weight[3] - unit_bits;
  }
}

/// Most of the weight is in a small part of the blocks, so the others are added only when their ranges are wanted.
void all_candidates::complete(int range) {
  if (range < complete_) return;
  for (std::size_t b = 0; b < block_most_.size(); ++b)
    if (block_most_[b] < first_depth) add_block(b * block);
  complete_ = ranges;
}

void all_candidates::gather(int range) {
  gathered_.clear();
  const float to = static_cast<float>(range) / -ranges_per_unit,
              above = static_cast<float>(range + 1) / -ranges_per_unit;
  const __m128 all_above = _mm_set1_ps(above), all_to = _mm_set1_ps(to);
  for (std::size_t b = 0; b < block_most_.size(); ++b) {
    if (block_most_[b] <= above) continue;
    for (std::size_t i = b * block; i < (b + 1) * block; i += 16)
      for (unsigned lanes = lanes_within(x_.data() + i, all_above, all_to); lanes; lanes &= lanes - 1) {
        const std::size_t at = i + to_size(std::countr_zero(lanes));
        gathered_.push_back(ranked(logits_[at], static_cast<token_id>(at)));
      }
  }
}

std::uint64_t all_candidates::weight_of_gathered(std::size_t from, std::size_t to) const {
  std::uint64_t sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += weight_of(exponentials_[to_size(token_of(gathered_[i]))]);
  return sum;
}

void all_candidates::keep_first(std::size_t count) {
  std::array<std::size_t, ranges> counts{};
  for (std::size_t i = 0; i < logits_.size(); ++i) ++counts[range_of(x_[i])];
  for (int range = 0; range < ranges - 1; ++range) {
    const std::size_t here = counts[to_size(range)];
    if (count < here) return keep_first_of(range, count);
    count -= here;
  }
}

/// Leaves all tokens of the ranges before, and `count` of this one.
void all_candidates::keep_first_of(int range, std::size_t count) {
  complete(range);
  total_ = std::accumulate(weights_.begin(), weights_.begin() + range, std::uint64_t{0});
  gather(range);
  std::nth_element(gathered_.begin(), gathered_.begin() + static_cast<std::ptrdiff_t>(count), gathered_.end());
  total_ += weight_of_gathered(0, count);
}

located_token all_candidates::locate(std::uint64_t target) {
  std::uint64_t before = 0;
  int range = 0;
  for (;; ++range) {
    complete(range);
    const std::uint64_t weight = weights_[to_size(range)];
    if (before + weight > target) break;
    before += weight;
  }
  gather(range);
  return locate_gathered(before, target);
}

/// Halves the range until few are left, and only those are sorted.
located_token all_candidates::locate_gathered(std::uint64_t before, std::uint64_t target) {
  constexpr std::size_t few = 32;
  std::size_t from = 0, to = gathered_.size();
  const auto at = [&](std::size_t i) { return gathered_.begin() + static_cast<std::ptrdiff_t>(i); };
  while (to - from > few) {
    const std::size_t middle = from + (to - from) / 2;
    std::nth_element(at(from), at(middle), at(to));
    const std::uint64_t half = weight_of_gathered(from, middle);
    if (before + half > target) {
      to = middle;
    } else {
      before += half;
      from = middle;
    }
  }
  std::sort(at(from), at(to));
  for (;; ++from) {
    const std::uint64_t through = before + weight_of_gathered(from, from + 1);
    if (through > target) return {token_of(gathered_[from]), before, through};
    before = through;
  }
}

}  // namespace troupe::detail
