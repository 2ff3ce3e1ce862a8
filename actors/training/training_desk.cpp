// Leases: which trainer works on which job. Commands: training_desk_commands.cpp. Results: training_desk_results.cpp.
#include "actors/training/training_desk_impl.hpp"

#include <cmath>

#include "actors/jobs/job_json.hpp"
#include "base/error.hpp"

namespace troupe {
namespace {

constexpr duration look_interval = std::chrono::milliseconds(100);
constexpr double least_change = 0.02;  // smaller changes of the share are not sent

training_pace::load load_of_all(const std::map<replica_id, replica_figures>& replicas) {
  training_pace::load all;
  for (const auto& [replica, figures] : replicas) {
    all.busy |= figures.load.running > 0 || figures.load.waiting > 0;
    all.steps += figures.scheduling.steps;
  }
  return all;
}

std::string trainers_of(const training_queue::group& leases) {
  std::string names;
  for (const auto& each : leases) names += (names.empty() ? "" : ", ") + each.trainer;
  return names;
}

}  // namespace

training_desk_state::training_desk_state(handle::pointer self, training_desk_parts parts)
    : self_(self), parts_(std::move(parts)), intake_(parts_.intake), queue_(parts_.queue), pace_(parts_.may_delay) {
  post();
}

training_desk_state::handle::behavior_type training_desk_state::make_behavior() {
  return {
      [this](command_call& call) { run(call); },
      [this](const begin_training& begun) { begin(begun); },
      [this](const job_changed& changed) { take_change(changed); },
      [this](const trainer_joined& joined) {
        trainers_[joined.name] = {joined.trainer, joined.meeting};
        tell_what_to_keep(joined.name);
        queue_.trainer_joined(joined.name, joined.reach);
        assign();
      },
      [this](const trainer_lost& lost) { lose_trainer(lost); },
      [this](const training_progress& progress) { take_progress(progress); },
      [this](const training_ended& ended) { take_end(ended); },
      [this](const want_training_piece& wanted) {
        if (const auto found = find_leased(wanted.lease))
          tell_trainer(found->lease,
                       read_training_piece(intake_.folder_of(found->lease.job), found->job.files, wanted));
      },
      [this](const training_piece& piece) { take_piece(piece); },
      [](const carry_on& next) { next.run(); },
      [this](wake) {
        is_looking_ = false;
        pace_trainers();
        say_who_waits();
        give_up_awaited();
        look_again();
      },
      [this](stop_now) {
        trainers_.clear();
        parts_.jobs = nullptr;
        parts_.store = nullptr;
        self_->quit();
      },
  };
}

training_desk_state::record* training_desk_state::find(const std::string& id) {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second;
}

std::optional<training_desk_state::leased> training_desk_state::find_leased(training_lease number) {
  const auto lease = queue_.find_lease(number.value);
  record* job = lease ? find(lease->job) : nullptr;
  if (!job) return {};
  return leased{*lease, *job};
}

/// Takes up the jobs of an earlier head.
void training_desk_state::begin(const begin_training& begun) {
  std::vector<std::string> known;
  for (const job_info& job : begun.unfinished) known.push_back(job.spec.id);
  intake_.take_up(known);
  for (const job_info& job : begun.unfinished) {
    record& made = jobs_[job.spec.id];
    if (const auto mark = begun.marks.find(job.spec.id); mark != begun.marks.end()) made.noted = mark->second;
    try {
      made.spec_text = job.spec.options;
      made.spec = read_training_spec(job.spec.options, "job " + job.spec.id);
      queue_.add(job.spec.id, job.state == job_state::paused, static_cast<int>(made.spec.trainers), job.spec.tenant);
      if (!made.noted.trainer.empty()) queue_.note_holder(job.spec.id, made.noted.trainer);
    } catch (const std::exception& error) {
      fail(job.spec.id, error.what());
    }
  }
  assign();
}

/// Called when the change is in the journal. Resuming a running job changes nothing; nor does it where the job is being
/// published, which nobody stops by pausing.
void training_desk_state::take_change(const job_changed& changed) {
  if (changed.state == job_state::paused) {
    stop_leases(queue_.pause(changed.job));
    if (record* job = find(changed.job)) job->result.reset();
  } else if (changed.state == job_state::queued) {
    const record* job = find(changed.job);
    if (job && !job->figures.is_publishing) queue_.resume(changed.job);
  } else if (is_finished(changed.state)) {
    end(changed.job);
  }
  assign();
}

/// Also widens: a job that could have more trainers stops with a checkpoint and goes on with all of them.
void training_desk_state::assign() {
  while (true) {
    if (const auto leases = queue_.assign(); !leases.empty())
      give(leases);
    else if (const auto ended = queue_.widen(); !ended.empty())
      stop_leases(ended);
    else
      break;
  }
  note_awaited();
  look_again();
  post();
}

void training_desk_state::give(const training_queue::group& leases) {
  const std::string id = leases.front().job;
  record* job = find(id);
  if (!job) return queue_.remove(id);
  if (job->spec.base != 0 && model_id(job->spec.base) != parts_.base)
    return fail(id,
                fmt::format("was accepted for another base ({:016x}) than the cluster runs now ({:016x}): submit it "
                            "anew, or let the cluster run the files and quant of before and submit it there",
                            job->spec.base, parts_.base.value));
  if (!knows_data_of(id)) return;
  job->result.reset();
  job->moved = clock_.now();
  job->is_said_to_wait = false;
  parts_.say(fmt::format("{}: {} work{} on it", id, trainers_of(leases), leases.size() == 1 ? "s" : ""));
  ask_journal([id](journal& book) { return book.start(id); }, [](const auto&) {});
  send_orders(*job, leases);
}

/// Looks for the data of a job that an earlier head has accepted. What cannot be read now may be whole.
bool training_desk_state::knows_data_of(const std::string& id) try {
  record& job = jobs_.at(id);
  if (job.files.empty()) job.files = intake_.files_of(id, job.spec);
  return true;
} catch (const input_error& error) {
  pause_with(id, error.what());
  return false;
}

void training_desk_state::send_orders(const record& job, const training_queue::group& leases) {
  train_job order;
  order.job = leases.front().job;
  order.spec = job.spec_text;
  order.files = job.files;
  order.model = parts_.base;
  order.share = share_;
  order.ranks = static_cast<std::uint32_t>(leases.size());
  order.first = training_lease(leases.front().number);
  order.meeting = trainers_.at(leases.front().trainer).meeting;
  for (const auto& lease : leases) {
    tell_trainer(lease, order);
    ++order.rank;
  }
}

void training_desk_state::stop_leases(const training_queue::group& ended) {
  for (const auto& lease : ended) tell_trainer(lease, stop_training());
}

/// Other jobs may have ended while a trainer was away that has their data and checkpoints. On the head's own machine
/// its folder may be the intake's, so what clients are sending is no job yet, and stays.
void training_desk_state::tell_what_to_keep(const std::string& name) {
  ask_journal([](journal& book) { return book.unfinished(); },
              [this, name](const std::vector<job_info>& unfinished) {
                const auto found = trainers_.find(name);
                if (found == trainers_.end()) return;
                keep_jobs kept{intake_.jobs()};
                for (const job_info& job : unfinished)
                  if (!job.spec.is_batch()) kept.jobs.push_back(job.spec.id);
                tell(found->second.actor, std::move(kept));
              });
}

void training_desk_state::lose_trainer(const trainer_lost& lost) {
  trainers_.erase(lost.name);
  const auto loss = lost.why == life_end::planned ? training_queue::loss{queue_.trainer_left(lost.name), {}}
                                                  : queue_.trainer_lost(lost.name);
  stop_leases(loss.ended);
  if (!loss.given_up.empty())
    fail(loss.given_up, fmt::format("its trainer died {} times at the same place: see the log of {}",
                                    parts_.queue.most_deaths, lost.name));
  assign();
}

void training_desk_state::pace_trainers() {
  const double share = pace_.share(load_of_all(parts_.board->replicas()), clock_.now());
  if (share == share_ || (share != 0 && share != 1 && std::abs(share - share_) < least_change)) return;
  share_ = share;
  for (const auto& [id, job] : jobs_)
    for (const auto& lease : queue_.leases_of(id)) tell_trainer(lease, set_training_share{{}, share});
}

/// Tells people why a job does not move. Once a lease, since a single step may take that long.
void training_desk_state::say_who_waits() {
  if (!parts_.idle_priority) return;
  for (auto& [id, job] : jobs_) {
    const auto leases = queue_.leases_of(id);
    if (leases.empty() || job.is_said_to_wait || clock_.now() - job.moved < parts_.patience) continue;
    job.is_said_to_wait = true;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(parts_.patience).count();
    const std::string text = fmt::format(
        "{} made no step for {} s: it runs when nothing else wants its machine's processors; "
        "training.idle_priority and training.may_delay in the cluster's file can give it more",
        trainers_of(leases), seconds);
    note_event(id, message_event, message_text("warn", text));
    write_events(id);
  }
}

/// The steps of a job are where its trainer is, which may come back at once, as it does where the head or the trainer
/// was started anew.
void training_desk_state::note_awaited() {
  std::map<std::string, std::string> holders;
  for (const auto& [id, holder] : queue_.awaited()) holders[id] = holder;
  for (auto& [id, job] : jobs_) {
    const auto found = holders.find(id);
    if (found == holders.end()) {
      job.awaited_since.reset();
    } else if (!job.awaited_since) {
      job.awaited_since = clock_.now();
      parts_.say(fmt::format("{}: waits for {}, which has its checkpoint", id, found->second));
    }
  }
}

void training_desk_state::give_up_awaited() {
  bool has_changed = false;
  for (const auto& [id, holder] : queue_.awaited()) {
    record* job = find(id);
    if (!job || !job->awaited_since || clock_.now() - *job->awaited_since < parts_.comeback) continue;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(parts_.comeback).count();
    note_event(
        id, message_event,
        message_text("warn",
                     fmt::format("{}, which had step {}, did not come back in {} s, or has other work: another goes "
                                 "on from a checkpoint of its own or, where it has none, begins anew",
                                 holder, job->noted.step, seconds)));
    write_events(id);
    queue_.wait_no_longer(id);
    has_changed = true;
  }
  if (has_changed) assign();
}

/// Wakes this actor again, as long as anybody trains or is waited for.
void training_desk_state::look_again() {
  if (is_looking_) return;
  for (const auto& [id, job] : jobs_) {
    if (queue_.leases_of(id).empty() && !job.awaited_since) continue;
    is_looking_ = true;
    return tell_after(self_, look_interval, wake{});
  }
}

/// Posts how far jobs are, which clients are shown beside what the journal has.
void training_desk_state::post() const {
  std::map<std::string, fine_tune_figures> all;
  for (const auto& [id, job] : jobs_) {
    fine_tune_figures& figures = all[id] = job.figures;
    figures.adapter = job.spec.adapter;
    figures.trainers = trainers_of(queue_.leases_of(id));
    figures.share = share_;
  }
  parts_.board->post_fine_tunes(std::move(all));
}

training_desk_actor spawn_training_desk(caf::actor_system& system, training_desk_parts parts) {
  return spawn_state<training_desk_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
