// Writes outputs into the journal, tries again what failed, and removes old jobs.
#include <fmt/format.h>

#include "actors/jobs/jobs.hpp"
#include "actors/json_dump_impl.hpp"

namespace troupe {

/// While the disk takes none, as many wait in memory as memory can spare; no further lines begin.
bool jobs_state::is_full_of_outputs() const {
  return outputs_.size() >= parts_.most_unrecorded || output_bytes_ >= parts_.most_unrecorded_bytes;
}

void jobs_state::record_soon() {
  if (has_failed_) return;  // the next attempt is on its way, and takes these too
  if (outputs_.size() >= parts_.record_at_once) return record();
  if (!std::exchange(record_due_, true)) wake_in(parts_.record_after);
}

void jobs_state::record() {
  record_due_ = false;
  if (outputs_.empty()) return;
  std::vector<line_record> records;
  records.reserve(outputs_.size());
  for (const output& each : outputs_) records.push_back({each.job, each.index, each.text, each.ok});
  try {
    (void)parts_.book->record_all(records);
  } catch (const journal_failure& failure) {
    record_due_ = true;
    return note_failure(failure);
  }
  for (const output& each : outputs_) queue_.note_recorded(each.job);
  outputs_.clear();
  output_bytes_ = 0;
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

/// Removes jobs that have been over for long enough, piece by piece.
void jobs_state::sweep() {
  if (clock_.now() < sweep_at_) return;
  duration pause = parts_.sweep_interval;
  try {
    const bool has_old = parts_.keep.count() > 0 && parts_.book->remove_old(parts_.keep) > 0;
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
  has_failed_ = true;
  parts_.board->post("journal", dump(failure.what()));
  if (!std::exchange(is_failing_, true)) parts_.say(fmt::format("jobs stand still: {}", failure.what()));
  if (clock_.now() < retry_at_) return;  // the wake for it is on its way
  retry_at_ = clock_.now() + parts_.journal_retry;
  wake_in(parts_.journal_retry + std::chrono::milliseconds(1));
}

void jobs_state::try_all_again() {
  has_failed_ = false;
  take_up();
  record();
  if (end_complete_jobs()) post_soon();
  use_again();
  sweep();
  pump();
  if (is_failing_ && !has_failed_)
    post();
  else if (post_due_)
    post_soon();
  if (has_failed_ || !std::exchange(is_failing_, false)) return;
  parts_.board->remove("journal");
  parts_.say("the journal is written again: jobs go on");
}

void jobs_state::wake_in(duration after) {
  tell_after(self_, after, wake{});
}

}  // namespace troupe
