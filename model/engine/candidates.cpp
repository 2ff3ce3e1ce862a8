#include "model/engine/candidates.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace troupe::detail {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();
constexpr std::size_t block = block_maxima::block;
constexpr float ranges_per_unit = 32.0f;
/// Adding it leaves a double in [4096, 4097], whose last bit counts 2^-40.
constexpr double unit = 4096.0;
constexpr std::uint64_t unit_bits = std::bit_cast<std::uint64_t>(unit);

std::uint64_t weight_of(float exponential) {
  return std::bit_cast<std::uint64_t>(static_cast<double>(exponential) + unit) - unit_bits;
}

/// The weights of four tokens.
struct four_weights {
  __m128i low, high;
};

four_weights weights_of(const float* exponentials) {
  const __m128 e = _mm_load_ps(exponentials);
  const __m128i bits = _mm_set1_epi64x(static_cast<long long>(unit_bits));
  const auto pair = [&](__m128 two) {
    return _mm_sub_epi64(_mm_castpd_si128(_mm_add_pd(_mm_cvtps_pd(two), _mm_set1_pd(unit))), bits);
  };
  return {pair(e), pair(_mm_movehl_ps(e, e))};
}

std::uint64_t sum_of_block(const float* exponentials) {
  __m128i low = _mm_setzero_si128(), high = _mm_setzero_si128();
  for (std::size_t i = 0; i < block; i += 4) {
    const auto four = weights_of(exponentials + i);
    low = _mm_add_epi64(low, four.low);
    high = _mm_add_epi64(high, four.high);
  }
  std::uint64_t halves[2];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(halves), _mm_add_epi64(low, high));
  return halves[0] + halves[1];
}

float scaled(float logit, const scaling& scale) {
  const float x = (logit - scale.most) * scale.inverse_temperature;
  return x >= scale.least ? x : minus_infinity;
}

void scale_four(const float* logits, const scaling& scale, float* out) {
  const __m128 x =
      _mm_mul_ps(_mm_sub_ps(_mm_loadu_ps(logits), _mm_set1_ps(scale.most)), _mm_set1_ps(scale.inverse_temperature));
  const __m128 kept = _mm_cmpge_ps(x, _mm_set1_ps(scale.least));
  _mm_store_ps(out, _mm_or_ps(_mm_and_ps(kept, x), _mm_andnot_ps(kept, _mm_set1_ps(minus_infinity))));
}

std::size_t whole_blocks(std::size_t n) {
  return (n + block - 1) / block;
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
    for (std::size_t i = 0; i < n; ++i)
      x[i] = scaled(logits[static_cast<std::size_t>(token_of(tokens[from + i]))], scale);
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
  total_ = 0;
  complete_ = 0;
  sums_.fill({});
  block_most_.resize(maxima.of.size());
  constexpr std::size_t chunk = 16 * block;  // stays in the first cache between the passes
  const std::size_t padded = block_most_.size() * block;
  for (std::size_t from = 0; from < padded; from += chunk) {
    const std::size_t end = std::min(from + chunk, padded), last = std::min(end, logits.size());
    std::size_t i = from;
    for (; i + 4 <= last; i += 4) scale_four(logits.data() + i, scale, x_.data() + i);
    for (; i < end; ++i) x_[i] = i < last ? scaled(logits[i], scale) : minus_infinity;
    kernels.exponentials(x_.data() + from, static_cast<std::int64_t>(end - from), 0.0f, exponentials_.data() + from);
    for (i = from; i < end; i += block) {
      total_ += sum_of_block(exponentials_.data() + i);
      block_most_[i / block] = scaled(maxima.of[i / block], scale);
    }
  }
}

/// Sums the blocks whose largest x is in [from, below).
void all_candidates::add_blocks(float from, float below) {
  const __m128 per_unit = _mm_set1_ps(-ranges_per_unit), last = _mm_set1_ps(ranges - 1);
  alignas(16) std::int32_t range[4];
  alignas(16) std::uint64_t weight[4];
  for (std::size_t b = 0; b < block_most_.size(); ++b) {
    if (!(block_most_[b] >= from && block_most_[b] < below)) continue;
    for (std::size_t i = b * block; i < (b + 1) * block; i += 4) {
      const __m128 place = _mm_min_ps(_mm_mul_ps(_mm_load_ps(x_.data() + i), per_unit), last);
      _mm_store_si128(reinterpret_cast<__m128i*>(range), _mm_cvttps_epi32(place));
      const auto four = weights_of(exponentials_.data() + i);
      _mm_store_si128(reinterpret_cast<__m128i*>(weight), four.low);
      _mm_store_si128(reinterpret_cast<__m128i*>(weight + 2), four.high);
      for (int j = 0; j < 4; ++j) {
        auto& sum = sums_[static_cast<std::size_t>(range[j])];
        sum.weight += weight[j];
        ++sum.count;
      }
    }
  }
}

/// Sums are made where they are wanted first: most of the weight is in a small part of the blocks.
void all_candidates::complete(int range) {
  constexpr int first_part = 8 * static_cast<int>(ranges_per_unit);
  constexpr float first_depth = -8.0f;
  if (complete_ == 0) {
    add_blocks(first_depth, std::numeric_limits<float>::infinity());
    complete_ = first_part;
  }
  if (range < complete_) return;
  add_blocks(minus_infinity, first_depth);
  complete_ = ranges;
}

void all_candidates::gather(int range) {
  gathered_.clear();
  const auto lowest = static_cast<float>(range), next = static_cast<float>(range + 1);
  const __m128 per_unit = _mm_set1_ps(-ranges_per_unit), low = _mm_set1_ps(lowest), high = _mm_set1_ps(next);
  for (std::size_t b = 0; b < block_most_.size(); ++b) {
    if (block_most_[b] * -ranges_per_unit >= next) continue;
    for (std::size_t i = b * block; i < (b + 1) * block; i += 4) {
      const __m128 place = _mm_mul_ps(_mm_load_ps(x_.data() + i), per_unit);
      auto lanes =
          static_cast<unsigned>(_mm_movemask_ps(_mm_and_ps(_mm_cmpge_ps(place, low), _mm_cmplt_ps(place, high))));
      for (; lanes; lanes &= lanes - 1) {
        const std::size_t at = i + static_cast<std::size_t>(std::countr_zero(lanes));
        gathered_.push_back(ranked(logits_[at], static_cast<token_id>(at)));
      }
    }
  }
}

std::uint64_t all_candidates::weight_of_gathered(std::size_t from, std::size_t to) const {
  std::uint64_t sum = 0;
  for (std::size_t i = from; i < to; ++i)
    sum += weight_of(exponentials_[static_cast<std::size_t>(token_of(gathered_[i]))]);
  return sum;
}

void all_candidates::keep_first(std::size_t count) {
  complete(ranges - 1);
  std::uint64_t before = 0;
  for (int range = 0; range < ranges - 1; ++range) {
    const auto& sum = sums_[static_cast<std::size_t>(range)];
    if (count >= sum.count) {
      count -= sum.count;
      before += sum.weight;
      continue;
    }
    gather(range);
    std::nth_element(gathered_.begin(), gathered_.begin() + static_cast<std::ptrdiff_t>(count), gathered_.end());
    total_ = before + weight_of_gathered(0, count);
    return;
  }
}

located_token all_candidates::locate(std::uint64_t target) {
  std::uint64_t before = 0;
  int range = 0;
  for (;; ++range) {
    complete(range);
    const std::uint64_t weight = sums_[static_cast<std::size_t>(range)].weight;
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
