// For models that keep states: which place has the state of which running sequence, which beginnings of texts are worth
// another place, and what is to be copied from one to another. Of a model that keeps none it is empty, and no call does
// anything.
//
// Goals: a running sequence has a place of its own, which is given out again at once, since orders are carried out in
// their order; a state is copied before the rows of the next step, while it still stands where it should.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model/engine/scheduling/kept_beginnings.hpp"
#include "model/engine/scheduling/scheduled_sequence.hpp"

namespace troupe::detail {

class state_places {
 public:
  struct sizes {
    std::int32_t running;          ///< sequences that run at a time; 0: the model keeps no states
    std::int32_t kept_beginnings;  ///< beside those
    std::int32_t blocks;           ///< of the pool
    std::size_t worth_keeping;     ///< tokens that are computed between one beginning and the next
  };
  explicit state_places(const sizes& chosen);

  bool any() const { return running_ > 0; }
  /// Whether sequences can go on from what others have computed.
  bool share_beginnings() const { return !any() || beginnings_.any(); }
  /// nullptr if the model keeps no states.
  kept_beginnings* beginnings() { return any() ? &beginnings_ : nullptr; }

  /// The sequence begins to run. There is a place for each that has a slot.
  void take(scheduled_sequence& sequence);
  /// It stops. A step in flight may still have its place: whoever gets that next is in a later one.
  void leave(const scheduled_sequence& sequence);
  /// It begins with what the cache had of it: the state is fetched that was kept there.
  void fetch_beginning(const scheduled_sequence& sequence);
  /// A further answer begins where the prompt's first one stands, in a place of its own.
  void fork(const scheduled_sequence& leader, scheduled_sequence& follower);

  /// The next position at which the sequence's state is worth a place; 0: none. A step ends there for the sequence.
  std::size_t next_to_keep(const scheduled_sequence& sequence) const;
  /// The place where its state will be kept once its share has come to `to`; none if it is not to be, or there is none.
  std::optional<std::int32_t> keep(scheduled_sequence& sequence, std::size_t to);
  /// The share has come there: others can find what it computed, with the state that was kept in this place.
  void publish(std::int32_t place, const stored_text& stored, std::size_t to);
  /// The share came to nothing.
  void put_back(std::int32_t place) { beginnings_.put_back(place); }

  /// What is to be copied before the rows of the next step. `copies` must be empty.
  void move_copies_to(std::vector<state_copy>& copies) { std::swap(copies, copies_); }
  /// The stages forgot what they stored; so must the cache.
  void forget_copies() { copies_.clear(); }

  /// For tests: `taken` are the places of those that run, `kept` counts what was asked to be kept by steps in flight.
  bool is_consistent(std::vector<std::int32_t> taken, std::int32_t kept) const;

 private:
  std::int32_t running_;
  std::size_t worth_keeping_;
  kept_beginnings beginnings_;
  std::vector<std::int32_t> free_;
  std::vector<state_copy> copies_;  ///< for the next plan
};

}  // namespace troupe::detail
