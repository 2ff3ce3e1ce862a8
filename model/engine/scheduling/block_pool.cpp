#include "model/engine/scheduling/block_pool.hpp"

#include <cassert>

#include "base/to_size.hpp"

namespace troupe {

block_pool::block_pool(std::int32_t blocks) {
  assert(blocks > 0);
  blocks_.resize(to_size(blocks));
  free_.reserve(blocks_.size());
  for (std::int32_t i = blocks; i-- > 0;) free_.push_back(block_id{i});
}

std::optional<block_id> block_pool::allocate() {
  if (free_.empty()) return std::nullopt;
  const block_id block = free_.back();
  free_.pop_back();
  assert(at(block).holders == 0 && !at(block).cached);
  at(block).holders = 1;
  return block;
}

void block_pool::hold(block_id block) {
  block_state& state = at(block);
  assert(state.holders > 0 || state.cached);
  if (state.holders++ == 0) --idle_;
}

void block_pool::release(block_id block) {
  block_state& state = at(block);
  assert(state.holders > 0);
  if (--state.holders > 0) return;
  if (state.cached)
    ++idle_;
  else
    free_.push_back(block);
}

void block_pool::mark_cached(block_id block) {
  block_state& state = at(block);
  assert(state.holders > 0 && !state.cached);
  state.cached = true;
}

void block_pool::unmark_cached(block_id block) {
  block_state& state = at(block);
  assert(state.cached);
  state.cached = false;
  if (state.holders > 0) return;
  --idle_;
  free_.push_back(block);
}

block_pool::block_state& block_pool::at(block_id block) {
  assert(block.value >= 0 && block.value < total());
  return blocks_[to_size(block.value)];
}

const block_pool::block_state& block_pool::at(block_id block) const {
  assert(block.value >= 0 && block.value < total());
  return blocks_[to_size(block.value)];
}

}  // namespace troupe
