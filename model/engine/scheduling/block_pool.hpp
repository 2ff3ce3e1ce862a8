// Who holds which block of keys and values.
//
// Goals: exact accounting in O(1) a call, no memory taken after the start, every misuse caught by an assert.
// Non-goals: the bytes (kv_storage has them), what a block holds and which idle block to give up (prefix_cache).
//
// A block is free, held (by one or more sequences), or idle: held by nobody, but its content is cached. Blocks are
// written only by a sequence that is their single holder; whoever wants to write into a block held by more takes a
// copy.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/blocks.hpp"
#include "base/fields.hpp"
#include "model/engine/scheduling/ids.hpp"

namespace troupe {

/// To be carried out before the rows of the step that it comes with: the content of `from` put into `to` as well.
struct block_copy {
  block_id from, to;

  auto fields() { return std::tie(from, to); }
};

class block_pool {
 public:
  explicit block_pool(std::int32_t blocks);

  /// A free block, now held once; none where no block is free.
  std::optional<block_id> allocate();
  /// One more holder of a held or idle block.
  void hold(block_id block);
  /// One holder less.
  void release(block_id block);

  /// The content of a held block is cached from now on: it becomes idle instead of free.
  void mark_cached(block_id block);
  /// Frees an idle block, or only forgets that a held one is cached.
  void unmark_cached(block_id block);

  int holders(block_id block) const { return at(block).holders; }
  bool is_cached(block_id block) const { return at(block).cached; }
  bool is_idle(block_id block) const { return is_cached(block) && holders(block) == 0; }

  std::int32_t total() const { return static_cast<std::int32_t>(blocks_.size()); }
  std::int32_t free() const { return static_cast<std::int32_t>(free_.size()); }
  std::int32_t idle() const { return idle_; }
  std::int32_t held() const { return total() - free() - idle(); }

 private:
  struct block_state {
    std::int32_t holders = 0;
    bool cached = false;
  };
  block_state& at(block_id block);
  const block_state& at(block_id block) const;

  std::vector<block_state> blocks_;
  std::vector<block_id> free_;  ///< last in, first out: what was used last is warm
  std::int32_t idle_ = 0;
};

}  // namespace troupe
