// Reports of trainers, and how a result becomes a version that answers.
#include <fmt/format.h>

#include "actors/jobs/job_json.hpp"
#include "actors/json_dump_impl.hpp"
#include "actors/training/adapter_owner.hpp"
#include "actors/training/training_desk_impl.hpp"
#include "actors/training/training_task.hpp"
#include "base/error.hpp"

namespace troupe {
namespace {

json validation_json(const training_point& point, const training_progress& progress) {
  json made{{"step", point.step}, {"validation_loss", point.loss}, {"validation_accuracy", point.accuracy}};
  if (progress.best_step >= 0 && progress.best_step <= point.step) {
    made["best_step"] = progress.best_step;
    made["best_validation_loss"] = progress.best_loss;
  }
  return made;
}

json step_json(const training_point& point, std::int64_t steps) {
  return {{"step", point.step},         {"steps", steps},     {"loss", point.loss},
          {"accuracy", point.accuracy}, {"rate", point.rate}, {"tokens", point.tokens}};
}

/// Steps are told again by a trainer that goes on from a checkpoint.
bool is_behind(const fine_tune_mark& noted, const training_point& point) {
  return std::pair(point.step, point.is_validation) > std::pair(noted.step, noted.is_validation);
}

/// What belongs to the version of a job's adapter. Throws input_error if there may be none: the job was cancelled, or
/// the name, which was free when the job was made, is somebody else's now (foreign_error).
void write_success(journal& book, const std::string& id, const training_spec& spec, const std::string& version,
                   const std::filesystem::path& folder) {
  const auto known = book.find(id);
  if (!known || is_finished(known->state)) refuse("{}: is over, so its adapter becomes no version", id);
  if (!may_publish(spec.owner, owner_of_adapter(book, spec.adapter, folder))) refuse_adapter(spec.adapter);
  if (!spec.owner.empty()) book.give_adapter(spec.adapter, spec.owner);
  (void)book.succeed(id, version);
}

auto append(journal& book, const std::string& id, const std::vector<noted_event>& events) {
  std::vector<event_record> records;
  for (const auto& [kind, text] : events) records.push_back({kind, text});
  return book.append_events(id, records);
}

}  // namespace

void training_desk_state::note_event(const std::string& id, std::string kind, std::string text) {
  if (record* job = find(id)) job->events.note(std::move(kind), std::move(text));
}

void training_desk_state::write_events(const std::string& id) {
  record* job = find(id);
  if (!job) return;
  auto events = job->events.begin_writing();
  if (events.empty()) return;
  ask_journal([id, events = std::move(events)](journal& book) { return append(book, id, events); },
              [this, id](const auto&) {
                if (record* known = find(id)) known->events.written();
                write_events(id);
              });
}

/// For the transaction that ends the job.
std::vector<noted_event> training_desk_state::last_events(const std::string& id, std::string message) {
  record* job = find(id);
  return job ? job->events.take_with(std::move(message)) : event_backlog().take_with(std::move(message));
}

void training_desk_state::take_progress(const training_progress& progress) {
  const auto found = find_leased(progress.lease);
  if (!found) return;
  const auto& [lease, job] = *found;
  queue_.note_progress(lease.number, progress.step);
  if (progress.step != job.figures.progress.step)
    job.moved = clock_.now();  // also backwards, when steps are made again
  const std::string& id = lease.job;
  if (!progress.message.empty())
    note_event(id, message_event,
               message_text(progress.is_warning ? "warn" : "info", lease.trainer + " " + progress.message));
  note_points(lease, job, progress);
  if (progress.checkpoint > job.noted.checkpoint) {
    note_event(id, checkpoint_event, dump({{"step", progress.checkpoint}}));
    job.noted.checkpoint = progress.checkpoint;
  }
  job.figures.progress = progress;
  job.figures.progress.points.clear();
  post();
  write_events(id);
}

/// Each is written down once, with the trainer, whom the next head waits for.
void training_desk_state::note_points(const training_queue::lease& lease, record& job,
                                      const training_progress& progress) {
  for (const training_point& point : progress.points) {
    (point.is_validation ? job.figures.last_validation : job.figures.last_step) = point;
    if (!is_behind(job.noted, point)) continue;
    json text = point.is_validation ? validation_json(point, progress) : step_json(point, progress.steps);
    text["trainer"] = lease.trainer;
    note_event(lease.job, metrics_event, dump(text));
    job.noted.step = point.step;
    job.noted.is_validation = point.is_validation;
    job.noted.trainer = lease.trainer;
  }
}

void training_desk_state::take_end(const training_ended& ended) {
  const auto found = find_leased(ended.lease);
  if (!found) return;
  const training_queue::lease& lease = found->lease;
  if (ended.is_alone) return fall_apart(lease, ended.error);
  if (ended.may_pass) return pause_with(lease.job, lease.trainer + ": " + ended.error);
  if (!ended.error.empty()) return fail(lease.job, ended.error);
  if (!ended.files.empty()) return take_result(lease, ended.files);
  stop_leases(queue_.give_back(lease.number));  // it has stopped, but this head did not ask for it
  assign();
}

/// The trainers of the job have lost each other.
void training_desk_state::fall_apart(const training_queue::lease& from, const std::string& why) {
  note_event(from.job, message_event, message_text("warn", from.trainer + " is alone: " + why));
  write_events(from.job);
  stop_leases(queue_.fell_apart(from.number));
  assign();
}

void training_desk_state::take_result(const training_queue::lease& from, const std::vector<training_file>& files) {
  stop_leases(queue_.finish(from.number));
  try_fetching(from.job, [&] {
    const auto folder = intake_.folder_of(from.job) / training_task::result_folder;
    jobs_.at(from.job).result.emplace(folder, files, training_lease(from.number));
    fetch_result(from.job);
  });
  assign();
}

void training_desk_state::take_piece(const training_piece& piece) {
  const auto found = find_leased(piece.lease);
  if (!found || !found->job.result) return;
  const std::string& id = found->lease.job;
  try_fetching(id, [&] {
    if (found->job.result->take(piece)) fetch_result(id);
  });
}

/// Runs what is a part of fetching the job's result, and may fail.
void training_desk_state::try_fetching(const std::string& id, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (may_pass(error))
      pause_with(id, error.what());
    else
      fail(id, error.what());
  }
}

void training_desk_state::fetch_result(const std::string& id) {
  record& job = jobs_.at(id);
  if (const auto wanted = job.result->next()) {
    for (const auto& lease : queue_.leases_of(id)) tell_trainer(lease, *wanted);
    return;
  }
  job.result.reset();
  publish(id);
}

/// The adapter store checks the files, spreads them to all workers and makes a version of them, or does nothing at all.
/// The journal gets the version and the job's success at once: whoever cancels the job is told that it has succeeded,
/// or there is no version. The head has all of the result, so its trainer is free, and until the store has answered
/// nobody gets the job.
void training_desk_state::publish(const std::string& id) {
  record& job = jobs_.at(id);
  job.figures.is_publishing = true;
  stop_leases(queue_.pause(id));
  tell(parts_.store, publish_adapter{.name = job.spec.adapter,
                                     .folder = intake_.folder_of(id) / training_task::result_folder,
                                     .answer =
                                         [this, id, own = handle(self_)](const adapter_published& made) {
                                           tell(own, carry_on{[this, id, made] { take_published(id, made); }});
                                         },
                                     .is_wanted = [is_over = job.is_over] { return !*is_over; },
                                     .write_with_it =
                                         [id, spec = job.spec, folder = parts_.adapter_folder](
                                             journal& book, const std::string& version) {
                                           write_success(book, id, spec, version, folder);
                                         }});
  assign();
}

/// What the store refuses can be mended (by more memory for adapters, say), unless the name is somebody else's.
void training_desk_state::take_published(const std::string& id, const adapter_published& made) {
  record* job = find(id);
  if (!job) return;  // it was cancelled meanwhile
  job->figures.is_publishing = false;
  if (!made.error.empty()) {
    const std::string error = "its adapter was not published: " + made.error;
    return made.fault == command_fault::foreign ? fail(id, error) : pause_with(id, error);
  }
  const std::string& version = made.full_name;
  parts_.say(fmt::format("{}: {} is published", id, version));
  end_in_journal(id, message_text("info", version + " is published"),
                 [id, version](journal& book) { return book.succeed(id, version); });
}

/// What somebody can mend, such as a full disk, pauses the job: its checkpoint and its result stay where they are.
void training_desk_state::pause_with(const std::string& id, const std::string& why) {
  parts_.say(fmt::format("{}: is paused: {}", id, why));
  stop_leases(queue_.pause(id));
  jobs_.at(id).result.reset();
  std::string message = message_text("error", fmt::format("paused until troupe jobs resume {}: {}", id, why));
  ask_journal(
      [id, events = last_events(id, std::move(message))](journal& book) {
        const bool is_open = book.pause(id).ok();
        if (is_open) (void)append(book, id, events);
        return is_open;
      },
      [](bool) {});
  assign();
}

void training_desk_state::fail(const std::string& id, const std::string& error) {
  parts_.say(fmt::format("{}: failed: {}", id, error));
  stop_leases(queue_.pause(id));  // the journal may wait for the disk, and the trainer need not
  end_in_journal(id, message_text("error", error),
                 [id, error](journal& book) { return book.finish(id, job_state::failed, error); });
  assign();
}

/// Writes the job's last events and its end, then removes it here.
template <class Ending>
void training_desk_state::end_in_journal(const std::string& id, std::string message, Ending ending) {
  ask_journal(
      [id, ending = std::move(ending), events = last_events(id, std::move(message))](journal& book) {
        (void)append(book, id, events);
        return ending(book);
      },
      [this, id](const auto&) {
        end(id);
        assign();
      });
}

/// The end is in the journal: everything else of the job is removed, here and on all trainers, since earlier ones have
/// data and checkpoints too.
void training_desk_state::end(const std::string& id) {
  queue_.remove(id);
  if (const record* job = find(id)) *job->is_over = true;
  for (const auto& [name, trainer] : trainers_) tell(trainer.actor, stop_training{{}, id});
  jobs_.erase(id);
  intake_.remove(id);
  post();
}

}  // namespace troupe
