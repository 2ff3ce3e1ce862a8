// For models that keep states: the beginnings of texts whose state is kept, so that others can go on from there.
//
// Goals: a place for each state that is kept beside those of the running; which place holds the state behind a cached
// block; the one that was used longest ago gives way. Every call but `take` costs the same however many there are.
// Non-goals: which beginnings are worth a place (state_places), and the states themselves (state_storage).
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "base/to_size.hpp"
#include "model/engine/scheduling/block_pool.hpp"

namespace troupe::detail {

class kept_beginnings {
 public:
  /// Places `first` and those after it, so many; `blocks` of the pool.
  kept_beginnings(std::int32_t first, std::int32_t places, std::int32_t blocks);

  bool any() const { return !places_.empty(); }

  /// For a state that will be kept there: a free place, or that of the beginning that was used longest ago. None if all
  /// were taken and not yet given to a block.
  std::optional<std::int32_t> take();
  /// The place that was taken holds the state behind this block, which is cached. Another place may have it already.
  void give(std::int32_t place, block_id block);
  /// Nothing came of the state that was to be kept there.
  void put_back(std::int32_t place);

  bool has(block_id block) const { return place_of_[to_size(block.value)] != nowhere; }
  /// Of a block that has one, which is used with this.
  std::int32_t use(block_id block);
  /// The block will mean something else.
  void forget(block_id block);
  void clear();

  /// Taken, and not given to a block so far.
  std::int32_t pending() const;
  /// For tests: blocks and places name each other.
  bool is_consistent() const;

 private:
  static constexpr std::int32_t nowhere = -1;
  enum class use_of_place : std::uint8_t { free, taken, held };
  struct kept_place {
    use_of_place use = use_of_place::free;
    block_id block = no_block;  ///< if it is held
    std::uint64_t last_use = 0;
  };
  kept_place& at(std::int32_t place) { return places_[to_size(place - first_)]; }

  std::int32_t first_;
  std::vector<kept_place> places_;
  std::vector<std::int32_t> place_of_;  ///< [blocks]
  std::uint64_t uses_ = 0;
};

}  // namespace troupe::detail
