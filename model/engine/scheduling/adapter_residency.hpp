// Which adapters are in memory.
//
// Goals
// - Never more than a budget of bytes, those on their way counted; an adapter that runs stays.
// - Nobody waits without bound, however the others are used; see below.
// - Decisions depend on the calls alone: no thread, no clock, no file. One call of turn() for each step.
// Non-goals: reading adapters, owning them, choosing who runs (batch_scheduler).
//
// Who comes and who goes
// - An adapter that is asked for while it is away joins the end of a line. Room is made for the first in the line and
//   nobody slips past it, so that small ones cannot keep a large one waiting. One that nobody wants any more leaves it.
// - The least recently used goes first, but never one that is pinned (a sequence with it runs). One that has just come
//   stays until it has run, so that the loading was not in vain; one that a sequence could start with in the last turn
//   stays too. Neither stays longer than `patience` turns for these reasons.
// - If everything that is left is pinned, and the first in the line has waited for `patience` turns, the least recently
//   used are closed: they count as not ready, no new sequence starts with them, and they go when the last sequence that
//   runs with them ends. At most a quarter of the budget is closed at a time, or what the first in the line needs.
// So the first in the line waits at most for `patience` turns, the rest of the longest running sequence and one
// loading. To the scheduler a sequence whose adapter waits for long is urgent, so it starts as soon as the adapter is
// there.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/engine/scheduling/ids.hpp"

namespace troupe {

/// Why an adapter cannot be declared: it alone is larger than the budget.
struct adapter_too_large {
  std::int64_t bytes, budget;
};

class adapter_residency {
 public:
  struct options {
    std::int64_t bytes = 0;
    std::uint64_t patience = 64;  ///< turns; best the scheduler's adapter_patience
  };
  /// To be carried out in this order: what is dropped makes the room for what is loaded.
  struct moves {
    std::vector<adapter_version> drop, load;
  };
  struct statistics {
    std::int64_t resident_bytes = 0, loading_bytes = 0;
    std::size_t loading = 0, waiting = 0;
    std::uint64_t loads = 0;
  };

  explicit adapter_residency(options chosen) : options_(chosen) {}

  /// An adapter that may be asked for from now on, at least until nobody wants it any more. Declaring one whose loading
  /// failed lets it be tried again.
  [[nodiscard]] std::optional<adapter_too_large> declare(adapter_version version, std::int64_t bytes);
  bool is_declared(adapter_version version) const { return adapters_.contains(version); }

  /// The scheduler's hook: whether a sequence with it may start now. If it is away, it is wanted from now on.
  bool is_ready(adapter_version version);

  using test = std::function<bool(adapter_version)>;
  /// Once for each step, between two steps; and where no step is under way that another turn would follow.
  /// `is_wanted`: some sequence waits for it; all are, if none is given.
  const moves& turn(const test& is_pinned, const test& is_wanted = {});
  /// What became of a load that turn() asked for.
  void loaded(adapter_version version);
  void failed(adapter_version version, std::string why);
  /// Why its loading failed; nullptr where it did not.
  const std::string* failure_of(adapter_version version) const;

  const std::vector<adapter_version>& residents() const { return residents_; }
  bool is_anybody_waiting() const { return !line_.empty(); }
  /// Of a declared one.
  std::int64_t bytes_of(adapter_version version) const { return adapters_.at(version).bytes; }
  statistics stats() const;

 private:
  enum class place : std::uint8_t { away, in_line, loading, resident, failed };
  struct adapter {
    std::int64_t bytes = 0;
    place where = place::away;
    bool pinned = false;
    bool closed = false;
    bool has_run = false;         ///< since it came
    std::uint64_t came = 0;       ///< the turn at which it was loaded
    std::uint64_t asked = 0;      ///< the turn at which it was last asked for; in line: first
    std::uint64_t last_used = 0;  ///< a count of askings: the order in which residents go
    std::string why;
  };

  void note_pinned(const test& is_pinned);
  void leave_line(const test& is_wanted);
  void forget_unwanted(const test& is_wanted);
  void serve_line();
  bool make_room_for(const adapter& wanted);
  bool may_go(const adapter& resident, bool overdue) const;
  void drop(adapter_version version);
  void close_for_overdue();
  std::int64_t bytes_owed() const;
  bool is_overdue(const adapter& waiting) const { return turn_ - waiting.asked >= options_.patience; }
  std::int64_t room() const { return options_.bytes - resident_bytes_ - loading_bytes_; }
  template <class Allowed>
  std::optional<adapter_version> least_recently_used(Allowed&& allowed) const;

  options options_;
  std::unordered_map<adapter_version, adapter> adapters_;
  std::size_t many_ = 1024;          ///< when there are more, it is time to forget some
  std::list<adapter_version> line_;  ///< first asked for first
  std::vector<adapter_version> residents_;
  moves moves_;
  std::int64_t resident_bytes_ = 0, loading_bytes_ = 0;
  std::uint64_t turn_ = 0, askings_ = 0;
  std::size_t loading_ = 0;
  std::uint64_t loads_ = 0;
};

}  // namespace troupe
