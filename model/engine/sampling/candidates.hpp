// The tokens that a draw may give, as whole-number weights in the order of vocabulary_scan.hpp.
//
// A weight is e^((logit - largest) / temperature) in units of 2^-40, so every sum of weights is exact. Therefore sums
// may be taken in any order and in parts, and choosing gives what a sorted vocabulary would give, without sorting. The
// price: tokens less likely than the most likely one by a factor of 2^41 are lost.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "model/engine/sampling/vocabulary_scan.hpp"
#include "model/ops/kernels.hpp"

namespace troupe::detail {

/// x = (logit - most) * inverse_temperature; -inf where it is below `least`.
struct scaling {
  float most;
  float inverse_temperature;
  float least;
};

/// A token and the weights of all tokens before it, without and with its own.
struct located_token {
  token_id token;
  std::uint64_t before;
  std::uint64_t through;
};

/// A few tokens, already in their order.
class few_candidates {
 public:
  few_candidates(const kernel_table& kernels, std::span<const float> logits, std::span<const ranked_token> tokens,
                 const scaling& scale);

  std::uint64_t total() const { return total_; }
  /// The token whose share of the weights holds `target`, which is below total().
  located_token locate(std::uint64_t target) const;

 private:
  std::span<const ranked_token> tokens_;
  std::vector<std::uint64_t> weights_;
  std::uint64_t total_ = 0;
};

/// The whole vocabulary. Weights are summed by ranges of x, and only a range that holds a wanted token is looked into.
/// Keeps its memory from one step to the next.
class all_candidates {
 public:
  void weigh(const kernel_table& kernels, std::span<const float> logits, const block_maxima& maxima,
             const scaling& scale);
  /// Leaves the first `count` tokens alone.
  void keep_first(std::size_t count);

  std::uint64_t total() const { return total_; }
  located_token locate(std::uint64_t target);

 private:
  /// Ranges of x: 32 to each unit. Those below 29 units hold weights of 0 alone.
  static constexpr int ranges = 1024;

  void reserve(std::size_t tokens);
  void add_block(std::size_t at);
  void complete(int range);
  void keep_first_of(int range, std::size_t count);
  void gather(int range);
  located_token locate_gathered(std::uint64_t before, std::uint64_t target);
  std::uint64_t weight_of_gathered(std::size_t from, std::size_t to) const;

  std::span<const float> logits_;
  aligned_buffer<float> x_;                    ///< [whole blocks]
  aligned_buffer<float> exponentials_;         ///< [whole blocks]
  std::vector<float> block_most_;              ///< largest x
  std::array<std::uint64_t, ranges> weights_;  ///< of each range
  int complete_ = 0;                           ///< so many ranges have their final sums
  std::vector<ranked_token> gathered_;
  std::uint64_t total_ = 0;
};

}  // namespace troupe::detail
