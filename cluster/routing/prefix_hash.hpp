#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/blocks.hpp"
#include "base/folded_product.hpp"
#include "base/model_ids.hpp"

namespace troupe {

/// Hashes of the beginnings of prompts, by which the router guesses what replicas have cached. The same on every
/// machine. A block's hash covers all blocks before it, the adapter and the salt, so equal hashes mean equal prefixes,
/// except by chance. They only serve to guess: a replica compares the tokens themselves. They do not withstand an
/// attacker.
constexpr std::uint64_t mix_prefix_hash(std::uint64_t hash, std::uint64_t word) {
  return folded_product(hash ^ word ^ 0xa0761d6478bd642fULL, 0xe7037ed1a0b428dbULL) + std::rotl(hash, 23);
}

constexpr std::uint64_t prefix_hash_of_start(adapter_version adapter, std::uint64_t salt = 0) {
  return mix_prefix_hash(0x9ae16a3b2f90404fULL ^ salt, adapter.value);
}

constexpr std::uint64_t prefix_hash_of_block(std::uint64_t before, std::span<const std::int32_t, block_tokens> tokens) {
  const auto word = [&](std::size_t i) { return std::uint64_t{static_cast<std::uint32_t>(tokens[i])}; };
  for (std::size_t i = 0; i < block_tokens; i += 2) before = mix_prefix_hash(before, word(i) | word(i + 1) << 32);
  return before;
}

/// The hashes of all full blocks.
std::vector<std::uint64_t> prefix_hashes(std::span<const std::int32_t> tokens, adapter_version adapter,
                                         std::uint64_t salt = 0);

}  // namespace troupe
