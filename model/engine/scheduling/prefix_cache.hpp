// Finds blocks of keys and values by what they hold, so that nothing is computed twice while it is still there.
//
// Goals: a full block is found by (model, adapter version, all tokens up to its end); sequences and several answers of
// one prompt share it; what nobody holds goes when room is needed, least recently used first, never a block before the
// cached ones that follow it. All memory is taken at the start.
// Non-goals: blocks that are not full; holding back a prompt because another one is just computing the same blocks.
//
// A hit never rests on a hash: the tokens, the adapter and the block before are compared too. By induction from the
// first block the content is then equal. That is why whoever holds a cached block must hold all before it: a block's
// number could otherwise be given to other content under its followers. `publish` keeps that true by naming the cached
// block that the caller has to hold instead of its own copy.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/to_size.hpp"
#include "model/engine/scheduling/block_pool.hpp"
#include "model/engine/scheduling/content_hash.hpp"
#include "model/engine/scheduling/kept_beginnings.hpp"

namespace troupe {

/// Where in a tree of prefixes a sequence stands: behind `last`, whose content has the name `hash`.
struct prefix_place {
  adapter_version adapter;
  std::uint64_t salt = 0;
  block_id last = no_block;
  content_hash hash;
};

class prefix_cache {
 public:
  /// From now on blocks of `pool` are given out here; the pool must live longer. So must `beginnings`, of a model that
  /// keeps states: only behind blocks that have one there anybody can go on.
  prefix_cache(block_pool& pool, model_id model, detail::kept_beginnings* beginnings = nullptr);

  /// Before the first token of any sequence with this adapter and salt. Others share nothing with it.
  prefix_place start_of(adapter_version adapter, std::uint64_t salt = 0) const;

  /// The cached block that goes on from `place` with these tokens, or no_block. Does not hold it.
  block_id find(const prefix_place& place, std::span<const token_id, block_tokens> tokens, content_hash hash) const;

  /// Holds the longest cached run of full blocks that go on from `place` with `tokens`, as far as one can go on from
  /// it; appends them to `blocks` and moves `place` behind them. Never all of the tokens: the last one is left, since a
  /// pass needs a row to answer from. Returns how many blocks were found where others went on in another way than
  /// `tokens`; 0 where nobody did.
  std::size_t match(prefix_place& place, std::span<const token_id> tokens, std::vector<block_id>& blocks);

  /// Says that `block`, which the caller holds, now holds these tokens behind `place`, and moves `place` behind it.
  /// Returns the block to hold from now on: the given one, or an equal one that was cached before (held for the
  /// caller; the given one is released). no_block: another content has the same hash; nothing changed.
  block_id publish(prefix_place& place, std::span<const token_id, block_tokens> tokens, block_id block);

  /// A block for new content, held once: a free one, or the least recently used idle one. no_block where there is none.
  block_id allocate();
  /// One holder less. The blocks of a sequence must be released last first, so that the end of a prefix leaves before
  /// its beginning.
  void release(block_id block);
  void hold(block_id block);

  /// Blocks that allocate() could give.
  std::int32_t available() const { return pool_.free() + pool_.idle(); }
  const block_pool& pool() const { return pool_; }
  std::int32_t cached() const { return cached_; }  ///< blocks; for tests
  /// Forgets all content, as when the stages that stored it are gone. Places got before mean nothing afterwards.
  void clear();

  /// Every count and link made again from scratch and compared: for tests.
  bool is_consistent() const;

 private:
  struct entry {
    content_hash hash;
    adapter_version adapter;
    std::uint64_t salt = 0;
    block_id before = no_block;
    std::int32_t followers = 0;                      ///< cached blocks whose `before` is this one
    block_id older = no_block, newer = no_block;     ///< neighbours among the idle
    std::array<token_id, block_tokens> tokens = {};  ///< [16]
  };

  struct found_block {
    block_id block;
    content_hash hash;
  };

  entry& at(block_id block) { return entries_[to_size(block.value)]; }
  const entry& at(block_id block) const { return entries_[to_size(block.value)]; }
  void find_run(prefix_place place, std::span<const token_id> tokens);
  std::size_t usable_run() const;
  void insert(const prefix_place& place, std::span<const token_id, block_tokens> tokens, content_hash hash,
              block_id block);
  void forget(block_id block);
  void join_idle(block_id block);
  void leave_idle(block_id block);

  std::size_t home_of(const content_hash& hash) const { return hash.low & (table_.size() - 1); }
  std::size_t slot_of(const content_hash& hash) const;  ///< of the hash, or the free slot where it would be
  void remove_from_table(const content_hash& hash);

  block_pool& pool_;
  model_id model_;
  detail::kept_beginnings* beginnings_;
  std::vector<found_block> run_;  ///< by the last search
  std::vector<entry> entries_;    ///< [blocks]
  std::vector<block_id> table_;   ///< open addressing, linear probing, at most half full
  block_id oldest_ = no_block, newest_ = no_block;
  std::int32_t cached_ = 0;
};

}  // namespace troupe
