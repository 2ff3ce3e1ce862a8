#pragma once
#include <vector>

#include "model/engine/scheduling/prefix_cache.hpp"
#include "model/engine/scheduling/scheduled_sequence.hpp"

namespace troupe::detail {

/// What happens to the blocks of one sequence, on behalf of the scheduler. Nothing in here decides who gets any.
class sequence_blocks {
 public:
  /// `shares`: sequences find in the cache what others have computed.
  sequence_blocks(prefix_cache& cache, bool shares) : cache_(cache), shares_(shares) {}

  /// Before its first step, and after clear().
  void begin(scheduled_sequence& sequence) const;
  /// Goes on with cached blocks as far as there are some, in place of empty ones that the sequence may hold. Of a model
  /// that keeps states, the state that stands behind them must be fetched.
  void reuse_cached(scheduled_sequence& sequence);
  /// Blocks to get before positions up to `positions` can be written: a copy of a shared one counts.
  std::size_t missing(const scheduled_sequence& sequence, std::size_t positions) const;
  /// Gets them; the cache must have so many available.
  void provide(scheduled_sequence& sequence, std::size_t positions, std::vector<block_copy>& copies);
  /// Shows the full computed blocks to the cache.
  void publish(scheduled_sequence& sequence);
  /// All that `from` holds and has computed, shared.
  void share(const scheduled_sequence& from, scheduled_sequence& to);
  /// Lets go of everything; what was computed is to be computed again.
  void clear(scheduled_sequence& sequence);

 private:
  bool must_copy(const stored_text& stored) const;
  block_id allocate();
  static void replace(stored_text& stored, std::size_t index, block_id block);

  prefix_cache& cache_;
  bool shares_;
  std::vector<block_id> found_;
};

}  // namespace troupe::detail
