#include "model/engine/sampling/vocabulary_scan.hpp"

#include <emmintrin.h>

#include <algorithm>
#include <bit>

#include "base/logarithm.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

constexpr std::size_t block_size = block_maxima::block;

float most_of(const float* values, std::size_t n) {
  float most = minus_infinity;
  for (std::size_t i = 0; i < n; ++i)
    if (values[i] > most) most = values[i];
  return most;
}

/// maxps gives its second operand where the first is not a number, so such logits are passed over.
float most_of_block(const float* values) {
  __m128 a = _mm_set1_ps(minus_infinity), b = a, c = a, d = a;
  for (const float* end = values + block_size; values != end; values += 16) {
    a = _mm_max_ps(_mm_loadu_ps(values), a);
    b = _mm_max_ps(_mm_loadu_ps(values + 4), b);
    c = _mm_max_ps(_mm_loadu_ps(values + 8), c);
    d = _mm_max_ps(_mm_loadu_ps(values + 12), d);
  }
  __m128 most = _mm_max_ps(_mm_max_ps(a, b), _mm_max_ps(c, d));
  most = _mm_max_ps(most, _mm_movehl_ps(most, most));
  return _mm_cvtss_f32(_mm_max_ss(most, _mm_shuffle_ps(most, most, 1)));
}

/// A bound that at least `count` logits reach, because as many blocks do.
float bound_for(const block_maxima& maxima, std::size_t count) {
  if (count > maxima.blocks.size()) return minus_infinity;
  std::vector<float> most = maxima.blocks;
  const auto last = most.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(most.begin(), last, most.end(), std::greater<>());
  return *last;
}

void append_from(std::span<const float> logits, std::size_t from, float bound, std::vector<ranked_token>& out) {
  const std::size_t to = std::min(from + block_size, logits.size());
  for (std::size_t i = from; i < to; ++i)
    if (logits[i] >= bound) out.push_back(ranked(logits[i], static_cast<token_id>(i)));
}

}  // namespace

void block_maxima::find(std::span<const float> logits) {
  blocks.resize(ceil_div(logits.size(), block_size));
  const std::size_t whole = logits.size() / block_size;
  for (std::size_t i = 0; i < whole; ++i) blocks[i] = most_of_block(logits.data() + i * block_size);
  if (whole < blocks.size())
    blocks[whole] = most_of(logits.data() + whole * block_size, logits.size() - whole * block_size);
  largest = most_of(blocks.data(), blocks.size());
}

token_id block_maxima::first(std::span<const float> logits) const {
  const auto found = std::find(blocks.begin(), blocks.end(), largest);
  const auto from = to_size(found - blocks.begin()) * block_size;
  for (std::size_t i = from; i < logits.size(); ++i)
    if (logits[i] == largest) return static_cast<token_id>(i);
  return 0;
}

ranked_token ranked(float logit, token_id token) {
  // Adding zero turns -0 into 0. Bits of floats sort as the floats do once those of negative ones are turned around.
  const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);
  const std::uint32_t descending = bits >> 31 ? bits : ~bits & 0x7fffffffu;
  return std::uint64_t{descending} << 32 | static_cast<std::uint32_t>(token);
}

void first_tokens(std::span<const float> logits, const block_maxima& maxima, std::size_t count,
                  std::vector<ranked_token>& out) {
  out.clear();
  if (count == 0) return;
  const float bound = bound_for(maxima, count);
  for (std::size_t i = 0; i < maxima.blocks.size(); ++i)
    if (maxima.blocks[i] >= bound) append_from(logits, i * block_size, bound, out);
  if (out.size() > count) {
    std::nth_element(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count), out.end());
    out.resize(count);
  }
  std::sort(out.begin(), out.end());
}

/// Chunks are summed by the kernel in its fixed order, and their sums one after the other.
double log_of_sum(const kernel_table& kernels, std::span<const float> logits, float most) {
  constexpr std::size_t chunk = 1024;
  alignas(64) float last[chunk], exponentials[chunk];
  double sum = 0.0;
  for (std::size_t from = 0; from < logits.size(); from += chunk) {
    const float* values = logits.data() + from;
    if (const std::size_t n = logits.size() - from; n < chunk) {
      std::copy_n(values, n, last);
      std::fill(last + n, last + chunk, minus_infinity);
      values = last;
    }
    sum += static_cast<double>(kernels.exponentials(values, chunk, most, exponentials));
  }
  return logarithm(sum);
}

}  // namespace troupe::detail
