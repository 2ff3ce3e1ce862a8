#include "cluster/routing/prefix_hash.hpp"

namespace troupe {

std::vector<std::uint64_t> prefix_hashes(std::span<const std::int32_t> tokens, adapter_version adapter,
                                         std::uint64_t salt) {
  std::vector<std::uint64_t> hashes;
  hashes.reserve(tokens.size() / block_tokens);
  std::uint64_t hash = prefix_hash_of_start(adapter, salt);
  for (; tokens.size() >= block_tokens; tokens = tokens.subspan(block_tokens)) {
    hash = prefix_hash_of_block(hash, tokens.first<block_tokens>());
    hashes.push_back(hash);
  }
  return hashes;
}

}  // namespace troupe
