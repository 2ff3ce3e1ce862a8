// Runs a byte grammar, byte by byte. A state stands for all ways in which the bytes so far can be read; states and the
// ways between them are found when they are needed and kept. Belongs to one thread.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/to_size.hpp"
#include "model/grammar/byte_grammar.hpp"

namespace troupe {

class text_automaton {
 public:
  using state = std::int32_t;
  static constexpr state dead = -1;
  /// A state with more ways at once is dead.
  static constexpr std::size_t most_ways = 1024;

  explicit text_automaton(std::shared_ptr<const byte_grammar> grammar);

  state start();
  state next(state from, std::uint8_t byte) {
    if (from < 0) return dead;
    const state known = next_[to_size(from) * classes_ + class_of_[byte]];
    return known != unknown ? known : find_next(from, byte);
  }
  bool is_complete(state at) const { return at >= 0 && states_[to_size(at)].complete; }
  /// Any byte can follow.
  bool goes_on(state at) const { return ways(at) > 0; }
  std::size_t ways(state at) const { return at < 0 ? 0 : states_[to_size(at)].ways; }
  /// A number for the step from a state by a byte; bytes that no rule tells apart have one step.
  std::size_t step_of(state from, std::uint8_t byte) const { return to_size(from) * classes_ + class_of_[byte]; }
  /// Places looked at to find where a step leads that was taken, be it nowhere. They depend on state and byte alone.
  std::size_t visits(std::size_t step) const { return visits_[step]; }
  /// A state that reads the next `bytes` bytes in the same way, in which repetitions that end later count as endless.
  state short_sighted(state from, std::int32_t bytes);

  const byte_grammar& grammar() const { return *grammar_; }
  /// Of memory, about, without the grammar's.
  std::size_t size() const;
  /// Forgets all states but these, which get new numbers.
  void keep_only(std::span<state> kept);
  /// Changes when states get new numbers.
  std::uint64_t generation() const { return generation_; }

 private:
  static constexpr state unknown = -2;
  static constexpr std::int32_t no_frame = -1;

  /// A place in a rule, and the call that led there.
  struct way {
    std::int32_t place, frame;
    friend auto operator<=>(const way&, const way&) = default;
  };
  /// A call that is not over: how often more its rule may and must be read, and then where it goes on.
  struct frame {
    std::int32_t edge, least, most, parent;
    friend bool operator==(const frame&, const frame&) = default;
  };
  struct frame_hash {
    std::size_t operator()(const frame& f) const;
  };
  template <class Change>
  class frame_copier;
  struct state_data {
    std::uint32_t first, ways;
    bool complete;
  };

  state find_next(state from, std::uint8_t byte);
  void follow(way from);
  void reach(std::int32_t place, std::int32_t frame);
  void enter(std::int32_t edge, std::int32_t least, std::int32_t most, std::int32_t parent);
  void leave(std::int32_t frame);
  std::int32_t frame_of(const frame& wanted);
  std::int32_t depth(std::int32_t frame) const { return frame == no_frame ? 0 : depths_[to_size(frame)]; }
  state close();
  state intern();
  void find_classes();

  std::shared_ptr<const byte_grammar> grammar_;
  std::uint16_t class_of_[256];
  std::size_t classes_ = 0;
  std::vector<state_data> states_;
  std::vector<way> ways_;              ///< of all states
  std::vector<state> next_;            // [states, classes]
  std::vector<std::uint16_t> visits_;  // [states, classes]
  std::unordered_multimap<std::uint64_t, state> by_content_;
  std::vector<frame> frames_;
  std::vector<std::int32_t> depths_;  ///< of frames
  std::unordered_map<frame, std::int32_t, frame_hash> by_frame_;
  std::uint64_t generation_ = 0;

  // While a state is being made.
  std::vector<way> found_, open_;
  std::unordered_set<std::uint64_t> seen_;
  std::size_t visited_ = 0;  ///< places, for the state made last
  bool complete_ = false, too_many_ = false;
};

}  // namespace troupe
