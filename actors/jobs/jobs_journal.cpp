// Writes outputs into the journal, and what other actors want written there; tries again what failed; removes old jobs;
// posts on the board those that run or wait, and the newest.
#include <fmt/format.h>

#include "actors/command_answers.hpp"
#include "actors/jobs/jobs.hpp"
#include "actors/json_dump_impl.hpp"
#include "base/error.hpp"

namespace troupe {

void jobs_state::record_soon() {
  if (will_retry_) return;  // that takes these, too
  if (outputs_.size() >= parts_.record_at_once) return record();
  if (!std::exchange(record_due_, true)) wake_in(parts_.record_after);
}

void jobs_state::record() {
  record_due_ = false;
  if (outputs_.empty()) return;
  try {
    (void)parts_.book->record_all(outputs_.records());
  } catch (const journal_failure& failure) {
    record_due_ = true;
    return note_failure(failure);
  }
  for (const auto& each : outputs_.all()) queue_.note_recorded(each.job, each.ok);
  outputs_.clear();
  if (end_complete_jobs())
    post();
  else
    post_soon();
}

/// Removes jobs that are finished from the queue. While the journal cannot be read they stay until the next attempt.
bool jobs_state::end_complete_jobs() try {
  bool has_ended = false;
  for (const std::string& id : queue_.at_rest()) {
    const auto info = parts_.book->find(id);
    if (info && !is_finished(info->state)) continue;
    queue_.remove(id);
    has_ended = true;
  }
  return has_ended;
} catch (const journal_failure& failure) {
  note_failure(failure);
  return false;
}

/// Removes jobs that have been over for long enough, or were not sent whole, piece by piece.
void jobs_state::sweep() {
  if (clock_.now() < sweep_at_) return;
  duration pause = parts_.sweep_interval;
  try {
    parts_.book->check_writing();  // even if nobody asks for anything: the next job would be refused
    bool has_old = parts_.book->remove_unsealed(parts_.keep_unsealed) > 0;
    if (parts_.keep.count() > 0 && parts_.book->remove_old(parts_.keep) > 0) has_old = true;
    if (has_old) post_soon();
    if (parts_.book->sweep() || has_old) pause = parts_.sweep_pause;
  } catch (const journal_failure& failure) {
    return note_failure(failure);
  }
  sweep_at_ = clock_.now() + pause;
  wake_in(pause + std::chrono::milliseconds(1));
}

/// Sees to it that what could not be written or read is tried again.
void jobs_state::note_failure(const journal_failure& failure) {
  will_retry_ = true;
  parts_.board->post("journal", dump(failure.what()));
  if (!std::exchange(is_failing_, true)) parts_.say(fmt::format("jobs stand still: {}", failure.what()));
  if (clock_.now() < retry_at_) return;  // the wake for it is on its way
  retry_at_ = clock_.now() + parts_.journal_retry;
  wake_in(parts_.journal_retry + std::chrono::milliseconds(1));
}

bool jobs_state::can_write() try {
  parts_.book->check_writing();
  return true;
} catch (const journal_failure& failure) {
  note_failure(failure);
  return false;
}

void jobs_state::try_all_again() {
  will_retry_ = pump_due_ = false;
  if (is_failing_ && !can_write()) return;
  take_up();
  record();
  if (end_complete_jobs()) post_soon();
  use_again();
  sweep();
  pump();
  if (is_failing_ && !will_retry_)
    post();
  else if (post_due_)
    post_soon();
  if (will_retry_ || !std::exchange(is_failing_, false)) return;
  parts_.board->remove("journal");
  parts_.say("the journal is written again: jobs go on");
}

void jobs_state::wake_in(duration after) {
  tell_after(self_, after, wake{});
}

void jobs_state::post() try {
  constexpr std::size_t shown_jobs = 100;
  posted_ = clock_.now();
  posted_endings_ = parts_.book->endings();
  post_due_ = false;
  const auto jobs = parts_.book->foremost(shown_jobs);
  parts_.board->post("jobs", list(jobs, false));
  parts_.board->post("jobs.others", std::to_string(parts_.book->count() - jobs.size()));
} catch (const journal_failure& failure) {
  note_failure(failure);
  post_due_ = true;
  posted_ = {};  // the next attempt posts
}

/// Posts at most once in an interval; later changes appear on the board at its end. That a job is over is posted at
/// once: who has heard of it may look there.
void jobs_state::post_soon() {
  const bool has_ended = parts_.book->endings() != posted_endings_;
  if (has_ended || clock_.now() - posted_ >= parts_.post_interval) return post();
  if (!std::exchange(post_due_, true)) wake_in(parts_.post_interval + std::chrono::milliseconds(1));
}

/// What the disk did not take is tried again after a while, in order: later uses must not overtake it, except those
/// that are never tried again.
void jobs_state::use(const use_journal& order) {
  const bool must_wait = !order.on_failure && !unused_.empty();
  if (!must_wait && try_to_use(order)) return post_soon();
  if (!order.on_failure) unused_.push_back(order);
}

bool jobs_state::try_to_use(const use_journal& order) try {
  order.use(*parts_.book);
  return true;
} catch (const journal_failure& failure) {
  note_failure(failure);
  if (order.on_failure) order.on_failure(failure.what());
  return false;
}

/// Some at a time, since others wait for the journal as well.
void jobs_state::use_again() {
  if (unused_.empty()) return;
  constexpr std::size_t at_once = 32;
  for (std::size_t i = 0; i < at_once && !unused_.empty(); ++i) {
    if (!try_to_use(unused_.front())) return;
    unused_.pop_front();
  }
  if (!unused_.empty()) return wake_in(std::chrono::milliseconds(1));
  post_soon();
}

void jobs_state::save(const save_catalogue& order) {
  std::optional<command_answer> refusal;
  try {
    parts_.book->at_once([&] {
      if (order.together_with) order.together_with(*parts_.book);
      parts_.book->save(order.changes);
    });
  } catch (const journal_failure& failure) {
    note_failure(failure);
    refusal = journal_failed(failure.what());
  } catch (const input_error&) {
    refusal = refusal_of([] { throw; });
  }
  if (order.together_with) post_soon();
  tell(order.asker, catalogue_saved{order.ticket, std::move(refusal)});
}

}  // namespace troupe
