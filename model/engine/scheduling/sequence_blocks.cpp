#include "model/engine/scheduling/sequence_blocks.hpp"

#include <algorithm>
#include <cassert>

namespace troupe::detail {

void sequence_blocks::begin(scheduled_sequence& sequence) const {
  assert(sequence.blocks.empty());
  sequence.computed = sequence.published = sequence.known_blocks = sequence.kept = sequence.branch = 0;
  sequence.place = cache_.start_of(sequence.adapter, sequence.cache_salt);
  sequence.publishing = shares_;
}

void sequence_blocks::reuse_cached(scheduled_sequence& sequence) {
  if (sequence.reads_prompt() || !sequence.publishing || sequence.computed != sequence.published * block_tokens) return;
  found_.clear();
  const std::size_t before = sequence.computed;
  sequence.branch =
      before +
      block_tokens * cache_.match(sequence.place, std::span<const token_id>(sequence.tokens).subspan(before), found_);
  for (const block_id block : found_) {
    if (sequence.published == sequence.blocks.size()) {
      sequence.blocks.push_back(block);
    } else {
      cache_.release(sequence.blocks[sequence.published]);
      replace(sequence, sequence.published, block);
    }
    ++sequence.published;
    sequence.computed += block_tokens;
  }
  sequence.kept = sequence.computed;
}

std::size_t sequence_blocks::missing(const scheduled_sequence& sequence, std::size_t positions) const {
  const std::size_t wanted = blocks_for(positions);
  const std::size_t had = sequence.blocks.size();
  return (wanted > had ? wanted - had : 0) + (must_copy(sequence) ? 1 : 0);
}

void sequence_blocks::provide(scheduled_sequence& sequence, std::size_t positions, std::vector<block_copy>& copies) {
  if (must_copy(sequence)) {
    const block_id copy = allocate();
    const std::size_t index = sequence.computed / block_tokens;
    const block_id shared = sequence.blocks[index];
    copies.push_back({shared, copy});
    cache_.release(shared);
    replace(sequence, index, copy);
  }
  while (sequence.blocks.size() < blocks_for(positions)) sequence.blocks.push_back(allocate());
}

block_id sequence_blocks::allocate() {
  const block_id block = cache_.allocate();
  assert(block != no_block);
  return block;
}

void sequence_blocks::publish(scheduled_sequence& sequence) {
  while (sequence.publishing && (sequence.published + 1) * block_tokens <= sequence.computed) {
    const std::size_t index = sequence.published;
    const std::span<const token_id> tokens(sequence.tokens);
    const auto content = tokens.subspan(index * block_tokens).first<block_tokens>();
    const block_id kept = cache_.publish(sequence.place, content, sequence.blocks[index]);
    sequence.publishing = kept != no_block;
    if (!sequence.publishing) return;
    if (kept != sequence.blocks[index]) replace(sequence, index, kept);
    ++sequence.published;
  }
}

void sequence_blocks::share(const scheduled_sequence& from, scheduled_sequence& to) {
  assert(to.blocks.empty());
  to.blocks = from.blocks;
  for (const block_id block : to.blocks) cache_.hold(block);
  to.computed = from.computed;
  to.published = from.published;
  to.place = from.place;
  to.publishing = from.publishing;
  to.known_blocks = 0;
}

void sequence_blocks::clear(scheduled_sequence& sequence) {
  for (auto block = sequence.blocks.rbegin(); block != sequence.blocks.rend(); ++block) cache_.release(*block);
  sequence.blocks.clear();
  sequence.computed = sequence.published = sequence.known_blocks = 0;
}

/// The next position lies in a block that others hold too. Only a block that is partly filled can be that.
bool sequence_blocks::must_copy(const scheduled_sequence& sequence) const {
  const std::size_t index = sequence.computed / block_tokens;
  return index < sequence.blocks.size() && cache_.pool().holders(sequence.blocks[index]) > 1;
}

void sequence_blocks::replace(scheduled_sequence& sequence, std::size_t index, block_id block) const {
  sequence.blocks[index] = block;
  sequence.known_blocks = std::min(sequence.known_blocks, index);
}

}  // namespace troupe::detail
