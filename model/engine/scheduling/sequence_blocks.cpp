#include "model/engine/scheduling/sequence_blocks.hpp"

#include <algorithm>
#include <cassert>

namespace troupe::detail {

void sequence_blocks::begin(scheduled_sequence& sequence) const {
  assert(sequence.stored.blocks.empty());
  sequence.stored = {.place = cache_.start_of(sequence.adapter, sequence.cache_salt), .publishing = shares_};
}

void sequence_blocks::reuse_cached(scheduled_sequence& sequence) {
  stored_text& stored = sequence.stored;
  const std::size_t before = stored.computed;
  if (sequence.reads_prompt() || !stored.publishing || before != stored.published * block_tokens) return;
  found_.clear();
  const auto left = std::span<const token_id>(sequence.tokens).subspan(before);
  stored.branch = before + block_tokens * cache_.match(stored.place, left, found_);
  for (const block_id block : found_) {
    if (stored.published == stored.blocks.size()) {
      stored.blocks.push_back(block);
    } else {
      cache_.release(stored.blocks[stored.published]);
      replace(stored, stored.published, block);
    }
    ++stored.published;
    stored.computed += block_tokens;
  }
  stored.kept = stored.computed;
}

std::size_t sequence_blocks::missing(const scheduled_sequence& sequence, std::size_t positions) const {
  const std::size_t wanted = blocks_for(positions);
  const std::size_t had = sequence.stored.blocks.size();
  return (wanted > had ? wanted - had : 0) + (must_copy(sequence.stored) ? 1 : 0);
}

void sequence_blocks::provide(scheduled_sequence& sequence, std::size_t positions, std::vector<block_copy>& copies) {
  stored_text& stored = sequence.stored;
  if (must_copy(stored)) {
    const block_id copy = allocate();
    const std::size_t index = stored.computed / block_tokens;
    const block_id shared = stored.blocks[index];
    copies.push_back({shared, copy});
    cache_.release(shared);
    replace(stored, index, copy);
  }
  while (stored.blocks.size() < blocks_for(positions)) stored.blocks.push_back(allocate());
}

block_id sequence_blocks::allocate() {
  const block_id block = cache_.allocate();
  assert(block != no_block);
  return block;
}

void sequence_blocks::publish(scheduled_sequence& sequence) {
  stored_text& stored = sequence.stored;
  while (stored.publishing && (stored.published + 1) * block_tokens <= stored.computed) {
    const std::size_t index = stored.published;
    const std::span<const token_id> tokens(sequence.tokens);
    const auto content = tokens.subspan(index * block_tokens).first<block_tokens>();
    const block_id kept = cache_.publish(stored.place, content, stored.blocks[index]);
    stored.publishing = kept != no_block;
    if (!stored.publishing) return;
    if (kept != stored.blocks[index]) replace(stored, index, kept);
    ++stored.published;
  }
}

void sequence_blocks::share(const scheduled_sequence& from, scheduled_sequence& to) {
  assert(to.stored.blocks.empty());
  to.stored = from.stored;
  to.stored.known_blocks = 0;
  for (const block_id block : to.stored.blocks) cache_.hold(block);
}

void sequence_blocks::clear(scheduled_sequence& sequence) {
  const std::vector<block_id>& blocks = sequence.stored.blocks;
  for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) cache_.release(*block);
  sequence.stored = {};
}

/// The next position lies in a block that others hold too. Only a block that is partly filled can be that.
bool sequence_blocks::must_copy(const stored_text& stored) const {
  const std::size_t index = stored.computed / block_tokens;
  return index < stored.blocks.size() && cache_.pool().holders(stored.blocks[index]) > 1;
}

void sequence_blocks::replace(stored_text& stored, std::size_t index, block_id block) {
  stored.blocks[index] = block;
  stored.known_blocks = std::min(stored.known_blocks, index);
}

}  // namespace troupe::detail
