// The passes over a whole row of logits that a step cannot do without, each at about the speed of memory. The order of
// tokens is the same everywhere: larger logits first, equal ones by id; a logit that is not a number is no candidate.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "model/ops/kernels.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe::detail {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// The largest logit of every 64, so that later passes look only where something large is.
struct block_maxima {
  static constexpr std::size_t block = 64;
  std::vector<float> blocks;  ///< -inf where a block holds no number
  float largest = 0.0f;

  void find(std::span<const float> logits);
  /// The first token in the order; 0 where no logit is a number above -inf.
  token_id first(std::span<const float> logits) const;
};

/// Token and logit in 64 bits that sort in the order.
using ranked_token = std::uint64_t;
ranked_token ranked(float logit, token_id token);
inline token_id token_of(ranked_token ranked) {
  return static_cast<token_id>(ranked & 0xffffffffu);
}

/// The first `count` tokens in their order; fewer where there are fewer numbers. Fast while `count` is below the number
/// of blocks.
void first_tokens(std::span<const float> logits, const block_maxima& maxima, std::size_t count,
                  std::vector<ranked_token>& out);

/// log of the sum of e^(logit - most).
double log_of_sum(const kernel_table& kernels, std::span<const float> logits, float most);

}  // namespace troupe::detail
