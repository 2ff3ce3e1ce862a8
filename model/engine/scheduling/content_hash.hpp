#pragma once
#include <cstdint>
#include <span>

#include "base/blocks.hpp"
#include "base/folded_product.hpp"
#include "model/engine/scheduling/ids.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// Names what a block of keys and values holds, in the cache of one replica: its own tokens and all that came before
/// them. No protection against an attacker: whoever relies on equal hashes must compare the content as well. (What the
/// router guesses by is cluster/routing/prefix_hash.hpp.)
struct content_hash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr bool operator==(const content_hash&, const content_hash&) = default;
};

namespace detail {

/// The two halves are hashes of the same words with other constants; neither can stay at zero. `low` feeds `high`.
constexpr content_hash mixed(content_hash state, std::uint64_t word) {
  const std::uint64_t low =
      folded_product(state.low ^ word ^ 0x9e3779b97f4a7c15ULL, 0xd1342543de82ef95ULL) + 0xa0761d6478bd642fULL;
  const std::uint64_t high =
      folded_product(state.high ^ (word + 0xe7037ed1a0b428dbULL), 0x8ebc6af09c88c6e3ULL ^ (state.low | 1)) +
      0x589965cc75374cc3ULL;
  return {low, high};
}

}  // namespace detail

/// Before the first token. `salt`: of those who share what is cached.
constexpr content_hash hash_of_start(model_id model, adapter_version adapter, std::uint64_t salt = 0) {
  const content_hash start =
      detail::mixed(detail::mixed({0x243f6a8885a308d3ULL, 0x13198a2e03707344ULL}, model.value), adapter.value);
  return salt == 0 ? start : detail::mixed(start, salt);
}

/// Of the block that holds `tokens` and follows what `before` names.
constexpr content_hash hash_of_block(content_hash before, std::span<const token_id, block_tokens> tokens) {
  const auto word = [&](std::size_t i) { return std::uint64_t{static_cast<std::uint32_t>(tokens[i])}; };
  for (std::size_t i = 0; i < block_tokens; i += 2) before = detail::mixed(before, word(i) | word(i + 1) << 32);
  return before;
}

}  // namespace troupe
