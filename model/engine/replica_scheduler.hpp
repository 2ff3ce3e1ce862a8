// The batch scheduler's decisions, for whole requests: it also keeps what the last stage must know to choose tokens,
// and puts that into the orders. Goal: stages may lose what they hold at any moment, and every request still gets
// exactly the tokens that it would have had. Pure like batch_scheduler: no thread, clock or model.
#pragma once
#include <functional>
#include <unordered_map>
#include <vector>

#include "model/engine/engine_request.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"
#include "model/engine/stages/step_order.hpp"

namespace troupe {

class replica_scheduler {
 public:
  /// `vocab_size`: of the model, whose tokens requests may name.
  replica_scheduler(batch_scheduler::options options, std::int64_t vocab_size);
  ~replica_scheduler();

  /// Throws input_error where a token or a sampling parameter is out of range.
  result<accepted_request, refused_request> submit(engine_request request);
  bool cancel(sequence_id id);

  /// The next step; false where there is none to do now.
  bool plan_step(instant now, step_order& order);
  /// The one after the step in flight, as far as it can be known (batch_scheduler).
  bool plan_ahead(instant now, step_order& order);

  using token_sink = std::function<void(const engine_token&)>;
  using end_sink = std::function<void(const ended_sequence&)>;
  using reading_sink = std::function<void(const engine_reading&)>;
  void commit(const step_outcome& outcome, const token_sink& on_token, const end_sink& on_end,
              const reading_sink& on_reading = {});

  /// The stages forgot what they stored: all requests go on from their tokens.
  void forget_stored(life_end why = life_end::loss);
  /// Gives up every request: each answer by itself, but those that wait for their prompt together.
  given_up_requests give_up_all();
  /// The same for the requests with this adapter. The others go on.
  given_up_requests give_up_all_with(adapter_version adapter);

  /// The same for the oldest of those that wait for room, about `most` sequences, if they may go.
  using permission = std::function<bool(const engine_request&)>;
  given_up_requests give_up_waiting(std::size_t most, const permission& may_go);

  const batch_scheduler& decisions() const { return decisions_; }

 private:
  struct answer;

  bool add_answers_to(step_order& order, bool planned);
  void open_answers(step_order& order);
  void open_together(std::span<const sequence_id> ids, sequence_id prompt, step_order& order);
  void close(sequence_id id);
  given_up_requests give_up(std::vector<sequence_id> ids, std::size_t most = SIZE_MAX);
  engine_request rest_of(sequence_id id) const;
  bool waits_for_prompt(sequence_id first) const;
  void tell_readings(const step_outcome& outcome, const reading_sink& on_reading);
  void tell_tokens(const step_outcome& outcome, const token_sink& on_token);

  std::int64_t vocab_size_;
  batch_scheduler decisions_;
  std::unordered_map<sequence_id, answer> answers_;
  std::vector<sequence_id> closed_;  ///< to be told with the next order
  std::vector<sequence_outcome> outcomes_;
};

}  // namespace troupe
