#include "model/engine/scheduling/prefix_cache.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/to_size.hpp"

namespace troupe {

prefix_cache::prefix_cache(block_pool& pool, model_id model, detail::kept_beginnings* beginnings)
    : pool_(pool),
      model_(model),
      beginnings_(beginnings),
      entries_(to_size(pool.total())),
      table_(std::bit_ceil(to_size(pool.total()) * 2), no_block) {}

prefix_place prefix_cache::start_of(adapter_version adapter, std::uint64_t salt) const {
  return {adapter, salt, no_block, hash_of_start(model_, adapter, salt)};
}

block_id prefix_cache::find(const prefix_place& place, std::span<const token_id, block_tokens> tokens,
                            content_hash hash) const {
  const block_id block = table_[slot_of(hash)];
  if (block == no_block) return no_block;
  const entry& found = at(block);
  const bool same = found.before == place.last && found.adapter == place.adapter && found.salt == place.salt &&
                    std::equal(tokens.begin(), tokens.end(), found.tokens.begin());
  return same ? block : no_block;
}

std::size_t prefix_cache::match(prefix_place& place, std::span<const token_id> tokens, std::vector<block_id>& blocks) {
  find_run(place, tokens);
  for (const found_block& found : std::span(run_).first(usable_run())) {
    hold(found.block);
    blocks.push_back(found.block);
    place.last = found.block;
    place.hash = found.hash;
  }
  return !run_.empty() && at(run_.back().block).followers > 0 ? run_.size() : 0;
}

void prefix_cache::find_run(prefix_place place, std::span<const token_id> tokens) {
  run_.clear();
  for (; tokens.size() > block_tokens; tokens = tokens.subspan(block_tokens)) {
    const auto content = tokens.first<block_tokens>();
    const content_hash hash = hash_of_block(place.hash, content);
    const block_id block = find(place, content, hash);
    if (block == no_block) return;
    run_.push_back({block, hash});
    place.last = block;
    place.hash = hash;
  }
}

/// Its first blocks, from which one can go on.
std::size_t prefix_cache::usable_run() const {
  if (beginnings_ == nullptr) return run_.size();
  const auto has_state = [&](const found_block& found) { return beginnings_->has(found.block); };
  return to_size(run_.rend() - std::find_if(run_.rbegin(), run_.rend(), has_state));
}

block_id prefix_cache::publish(prefix_place& place, std::span<const token_id, block_tokens> tokens, block_id block) {
  assert(pool_.holders(block) > 0);
  const content_hash hash = hash_of_block(place.hash, tokens);
  block_id kept = find(place, tokens, hash);
  if (kept == no_block) {
    if (table_[slot_of(hash)] != no_block || pool_.is_cached(block)) return no_block;
    insert(place, tokens, hash, block);
    kept = block;
  } else if (kept != block) {
    hold(kept);
    release(block);
  }
  place.last = kept;
  place.hash = hash;
  return kept;
}

block_id prefix_cache::allocate() {
  if (pool_.free() == 0 && oldest_ != no_block) forget(oldest_);
  return pool_.allocate().value_or(no_block);
}

void prefix_cache::release(block_id block) {
  pool_.release(block);
  if (pool_.is_idle(block)) join_idle(block);
}

void prefix_cache::hold(block_id block) {
  if (pool_.is_idle(block)) leave_idle(block);
  pool_.hold(block);
}

void prefix_cache::clear() {
  while (oldest_ != no_block) forget(oldest_);
  for (std::int32_t i = 0; i < pool_.total(); ++i) {
    const block_id block{i};
    if (!pool_.is_cached(block)) continue;
    pool_.unmark_cached(block);
    at(block) = entry{};
  }
  std::fill(table_.begin(), table_.end(), no_block);
  cached_ = 0;
  if (beginnings_ != nullptr) beginnings_->clear();
}

void prefix_cache::insert(const prefix_place& place, std::span<const token_id, block_tokens> tokens, content_hash hash,
                          block_id block) {
  entry& published = at(block);
  published.hash = hash;
  published.adapter = place.adapter;
  published.salt = place.salt;
  published.before = place.last;
  published.followers = 0;
  std::copy(tokens.begin(), tokens.end(), published.tokens.begin());
  if (place.last != no_block) ++at(place.last).followers;
  table_[slot_of(hash)] = block;
  pool_.mark_cached(block);
  ++cached_;
}

/// Only for an idle block. The oldest idle block has no followers: whoever holds a follower holds this one too, and
/// lets go of it later.
void prefix_cache::forget(block_id block) {
  assert(at(block).followers == 0 && pool_.is_idle(block));
  leave_idle(block);
  remove_from_table(at(block).hash);
  if (at(block).before != no_block) --at(at(block).before).followers;
  pool_.unmark_cached(block);
  --cached_;
  if (beginnings_ != nullptr) beginnings_->forget(block);
}

void prefix_cache::join_idle(block_id block) {
  entry& joining = at(block);
  joining.older = newest_;
  joining.newer = no_block;
  (newest_ == no_block ? oldest_ : at(newest_).newer) = block;
  newest_ = block;
}

void prefix_cache::leave_idle(block_id block) {
  entry& leaving = at(block);
  (leaving.older == no_block ? oldest_ : at(leaving.older).newer) = leaving.newer;
  (leaving.newer == no_block ? newest_ : at(leaving.newer).older) = leaving.older;
  leaving.older = leaving.newer = no_block;
}

std::size_t prefix_cache::slot_of(const content_hash& hash) const {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = home_of(hash);
  while (table_[slot] != no_block && at(table_[slot]).hash != hash) slot = (slot + 1) & mask;
  return slot;
}

/// Moves later entries back into the gap if the search for them would otherwise end there.
void prefix_cache::remove_from_table(const content_hash& hash) {
  const std::size_t mask = table_.size() - 1;
  std::size_t gap = slot_of(hash);
  assert(table_[gap] != no_block);
  for (std::size_t next = (gap + 1) & mask; table_[next] != no_block; next = (next + 1) & mask) {
    const std::size_t home = home_of(at(table_[next]).hash);
    if (((next - home) & mask) < ((next - gap) & mask)) continue;
    table_[gap] = table_[next];
    gap = next;
  }
  table_[gap] = no_block;
}

bool prefix_cache::is_consistent() const {
  std::vector<std::int32_t> followers(entries_.size(), 0);
  std::int32_t cached = 0, idle = 0, listed = 0;
  for (std::int32_t i = 0; i < pool_.total(); ++i) {
    const block_id block{i};
    if (!pool_.is_cached(block)) continue;
    ++cached;
    idle += pool_.is_idle(block);
    if (table_[slot_of(at(block).hash)] != block) return false;
    const block_id before = at(block).before;
    if (before == no_block) continue;
    if (!pool_.is_cached(before) || (pool_.is_idle(before) && !pool_.is_idle(block))) return false;
    ++followers[to_size(before.value)];
  }
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (pool_.is_cached(block_id{static_cast<std::int32_t>(i)}) && entries_[i].followers != followers[i]) return false;
  for (block_id block = oldest_; block != no_block && listed <= idle; block = at(block).newer) {
    if (!pool_.is_idle(block)) return false;
    ++listed;
  }
  const auto in_table = std::count_if(table_.begin(), table_.end(), [](block_id block) { return block != no_block; });
  return cached == cached_ && idle == pool_.idle() && listed == idle && in_table == cached;
}

}  // namespace troupe
