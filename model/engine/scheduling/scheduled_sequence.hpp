#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "base/clock.hpp"
#include "model/engine/scheduling/ids.hpp"
#include "model/engine/scheduling/sequence_request.hpp"
#include "model/engine/scheduling/step_plan.hpp"
#include "model/engine/scheduling/stored_text.hpp"

namespace troupe::detail {

struct adapter_use;
struct tenant_share;

enum class sequence_phase : std::uint8_t {
  waiting,   ///< in a queue; holds no blocks
  running,   ///< holds blocks; takes part in steps
  following  ///< a further answer, until the first has computed their prompt
};

constexpr int tier_of(request_priority priority) {
  return 1 + static_cast<int>(priority);
}

/// What the scheduler knows of one answer. Owned by the scheduler, which gives pointers to queues and steps.
struct scheduled_sequence {
  sequence_id id;
  request_priority priority = request_priority::interactive;
  adapter_version adapter;
  std::uint64_t cache_salt = 0;
  adapter_use* use = nullptr;     ///< while waiting or running
  tenant_share* share = nullptr;  ///< until it ends
  std::uint64_t order = 0;        ///< of arrival; a preemption does not change it
  std::uint64_t urgent = 0;       ///< its place among the urgent; 0: not urgent
  std::size_t urgent_until = 0;   ///< so many tokens

  std::vector<token_id> tokens;  ///< prompt and answer so far; last perhaps one that is foreseen (chosen_before)
  std::size_t prompt_tokens = 0;
  std::size_t limit = 0;  ///< tokens at most
  std::vector<token_id> proposals;
  bool every_prompt_row = false;
  bool charged = false;  ///< the tenant has paid for the prompt

  stored_text stored;  ///< while it runs

  std::optional<instant> first_start;
  std::size_t reused = 0;  ///< tokens of the prompt that the prefix cache had, before there was an answer
  sequence_phase phase = sequence_phase::waiting;
  bool cancelled = false;        ///< only its blocks are still needed: by a step in flight, or by the other answers
  bool stalled = false;          ///< there is no block for its next token
  std::int32_t state_place = 0;  ///< while it has slots: where the stages keep its state, if the model keeps any
  bool has_slots = false;  ///< counts among those that run at a time; an answer that is over does not, even in flight
  lost_steps lost;         ///< begins anew where it gets further
  step_id in_flight;       ///< the last one it is in; 0: in no step
  bool foreseen = false;   ///< what that step does for it is counted as done: it may be in the next one as well
  step_id last_step;       ///< that had it; 0: none

  scheduled_sequence* leader = nullptr;        ///< of a following answer
  std::vector<scheduled_sequence*> followers;  ///< answers that wait for this one's prompt

  /// The prompt itself is asked about: none of it may come from the prefix cache.
  bool reads_prompt() const { return every_prompt_row && tokens.size() == prompt_tokens; }
  std::size_t pending() const { return tokens.size() - stored.computed; }
  /// In one step. A suspect computes again, in steps of their own, what did no harm before.
  std::size_t most_tokens() const {
    return suspect() && stored.computed < lost.at ? lost.at - stored.computed : pending();
  }
  bool landed() const { return in_flight.value == 0; }
  /// It may be in the step that is planned.
  bool can_join() const { return landed() || foreseen; }
  /// All tokens but the one that a step in flight will choose.
  std::span<const token_id> known() const {
    const bool is_foreseen = !tokens.empty() && tokens.back() == chosen_before;
    return std::span(tokens).first(tokens.size() - (is_foreseen ? 1 : 0));
  }
  bool decoding() const { return pending() == 1 && stored.computed >= prompt_tokens; }
  /// Shares that it may have of a step: its followers' too, once its prompt is computed.
  std::size_t slots() const { return 1 + followers.size(); }

  /// Perhaps its step is what makes the stages fail.
  bool suspect() const { return lost.lives >= 2; }

  /// 0: urgent, then one per priority.
  int tier() const { return urgent != 0 ? 0 : tier_of(priority); }
  bool in_batch_tier() const { return tier() == tier_of(request_priority::batch); }
};

/// The total order in which sequences get blocks and tokens. Each gives way to those before it alone.
inline bool ranks_before(const scheduled_sequence& a, const scheduled_sequence& b) {
  const auto key = [](const scheduled_sequence& s) { return std::tuple(s.tier(), s.urgent, s.order); };
  return key(a) < key(b);
}
constexpr auto in_order = [](const scheduled_sequence* a, const scheduled_sequence* b) { return ranks_before(*a, *b); };

}  // namespace troupe::detail
