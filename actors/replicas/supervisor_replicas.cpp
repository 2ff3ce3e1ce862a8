// Who holds which layers, and the lives of replicas.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "actors/json_dump_impl.hpp"
#include "actors/replicas/supervisor_impl.hpp"
#include "actors/workers/stage_ranks.hpp"
#include "cluster/config/config_place.hpp"

namespace troupe {
namespace {

/// A rank may find out that another process has ended a little sooner than the head does.
constexpr duration longest_news_of_an_end = std::chrono::milliseconds(300);

}  // namespace

/// Whether all nodes of the cluster's file are here, or enough time has passed.
bool supervisor_state::is_assembled(instant now) const {
  return is_late(now) || awaited_workers().empty();
}

bool supervisor_state::is_late(instant now) const {
  return now - started_ > std::chrono::seconds(parts_.config.assemble_seconds);
}

/// Those of the cluster's file that are not here.
std::vector<std::string> supervisor_state::awaited_workers() const {
  std::vector<std::string> names;
  for (const node_config& node : parts_.config.nodes)
    if (node.is_worker() && node.autostart && !workers_.contains(node.name)) names.push_back(node.name);
  return names;
}

/// Once: whoever looks for the reason why nobody serves looks here.
void supervisor_state::say_who_is_awaited() {
  if (std::exchange(said_who_is_awaited_, true)) return;
  const std::vector<std::string> names = awaited_workers();
  if (!names.empty())
    parts_.say(fmt::format("waits for {}: the node's own log says why it does not join", fmt::join(names, ", ")));
  else if (workers_.empty())
    parts_.say("waits for workers: none has joined so far");
}

/// The first placement. Where nodes of the file are missing, those that are here need not wait for long if they
/// suffice: nodes that come later become spares, or further replicas.
void supervisor_state::place_all(instant now) {
  if (is_late(now)) say_who_is_awaited();
  const bool assembled = is_assembled(now);
  if (workers_.empty() || (!assembled && now - last_join_ < parts_.gathering)) return clear_placement_problem();
  auto placed = place(offers_.all(), parts_.shape, parts_.wanted);
  if (!placed) {
    if (!assembled) return clear_placement_problem();
    const std::string text = fmt::format("{}: {}", place_of(parts_.config, placed.error().key), placed.error().text);
    if (std::exchange(placement_problem_, text) == text) return;
    parts_.say(text);
    parts_.board->post("placement", dump(text));
    return;
  }
  clear_placement_problem();
  placement_ = std::move(placed.value());
  while (replicas_.size() < placement_->replicas.size()) add_replica();
  for (std::size_t i = 0; i < replicas_.size(); ++i) start_replica(i);
}

/// Where those who are missing do not come back, nobody serves, and who is left suffices if placed otherwise.
void supervisor_state::end_vacancy(instant now) {
  if (!placement_) return;
  const bool is_vacant = std::ranges::none_of(placement_->replicas, &replica_placement::is_complete);
  if (is_vacant && now - last_complete_ <= parts_.longest_vacancy) return;
  last_complete_ = now;
  if (is_vacant) carry_out(place_anew(*placement_, offers_.all(), parts_.shape, parts_.wanted));
}

/// It was said of workers that were here then.
void supervisor_state::clear_placement_problem() {
  placement_problem_.clear();
  parts_.board->remove("placement");
}

/// For a worker that came after the first placement.
void supervisor_state::take_in(const std::string& name) {
  if (!placement_) return;
  carry_out(extend(*placement_, name, offers_.all(), parts_.shape, parts_.wanted));
}

void supervisor_state::give_up_worker(const std::string& name, life_end how) {
  if (!placement_) return;
  if (const auto at = find_worker(*placement_, name)) {
    stop_replica(at->replica, how);
    replicas_[at->replica].failures.forget(*at);
  }
  carry_out(repair(*placement_, name, offers_.all(), parts_.shape, parts_.wanted));
}

/// Where replicas share a machine, those that get smaller are restarted first: their memory must be free before the
/// changed replica takes it.
void supervisor_state::carry_out(const placement_change& change) {
  const placement before = std::exchange(*placement_, change.after);
  if (change.effect == placement_change::kind::none) return;
  if (change.effect == placement_change::kind::new_replica) add_replica();
  for (std::size_t i = 0; i < before.replicas.size(); ++i)
    if (i != change.replica && before.replicas[i] != placement_->replicas[i]) start_replica(i);
  start_replica(change.replica);
}

void supervisor_state::add_replica() {
  replica_record added;
  added.life.replica = replica_id(static_cast<std::uint32_t>(replicas_.size()));
  added.scheduler =
      spawn_scheduler(self_->system(), {.router = parts_.router,
                                        .supervisor = handle(self_),
                                        .adapters = parts_.adapters,
                                        .board = parts_.board,
                                        .replica = added.life.replica,
                                        .batches = parts_.batches,
                                        .vocab_size = parts_.vocab_size,
                                        .adapter_bytes = static_cast<std::int64_t>(parts_.config.adapters.memory)});
  parts_.directory->set(added.life.replica, added.scheduler);
  tell(parts_.router, replica_added{added.life.replica, added.scheduler});
  replicas_.push_back(std::move(added));
}

/// Begins a new life with empty storage. Needs all workers of the replica.
void supervisor_state::start_replica(std::size_t index) {
  stop_replica(index, life_end::planned);
  const replica_placement& where = placement_->replicas[index];
  if (!where.is_complete()) return;
  replica_record& replica = replicas_[index];
  replica.life.epoch = epoch_id(++lives_);
  std::set<seat> seats;
  for (std::uint32_t stage = 0; stage < where.stages.size(); ++stage)
    for (std::uint32_t rank = 0; rank < where.stages[stage].workers.size(); ++rank) {
      seats.insert({stage, rank});
      tell_stage(index, {stage, rank});
    }
  replica.course.start(std::move(seats), clock_.now());
}

void supervisor_state::tell_stage(std::size_t index, seat whose) {
  const auto [stage, rank] = whose;
  const replica_placement& where = placement_->replicas[index];
  const stage_placement& own = where.stages[stage];
  start_stage order;
  order.life = replicas_[index].life;
  order.stage = stage;
  order.first_layer = own.layers.first;
  order.layers = own.layers.count();
  order.blocks = where.kv_tokens / block_tokens;
  order.context = parts_.batches.context;
  order.max_rows = parts_.batches.max_batch_tokens;
  order.lookup_tokens = parts_.config.model.lookup_tokens;
  order.kv = parts_.kv;
  order.max_sequences = parts_.batches.max_sequences;
  order.states = parts_.batches.places_of_states();
  if (stage + 1 < where.stages.size()) order.next = workers_.at(where.stages[stage + 1].workers[rank]).endpoint;
  order.tensor_rank = rank;
  order.tensor_ranks = static_cast<std::uint32_t>(own.workers.size());
  if (order.tensor_ranks > 1) order.tensor_meeting = workers_.at(own.workers.front()).meeting;
  const worker_record& to = workers_.at(own.workers[rank]);
  if (to.link == no_link) local_->alarm->ring();
  tell(to.worker, std::move(order));
}

void supervisor_state::stop_replica(std::size_t index, life_end how) {
  replica_record& replica = replicas_[index];
  replica.missed.reset();
  if (replica.course.stop(clock_.now())) tell(replica.scheduler, replica_stopped{how});
}

void supervisor_state::fail_replica(std::size_t index, const std::string& why, const seat_failure& where) {
  parts_.say(fmt::format("replica {}: {}", index, why));
  stop_replica(index, where.lost ? life_end::lost_link : life_end::loss);
  replica_record& replica = replicas_[index];
  replica.failures.note(where, replica.course.failures() > 0);
  replica.course.note_failure(why);
}

/// Several ranks and stages may report that a life is over: the first report counts, but what a rank says of its own
/// counts more than that another misses it.
void supervisor_state::end_life(const replica_life& life, const std::string& why, const seat_failure& where) {
  const std::size_t index = life.replica.value;
  if (index >= replicas_.size() || replicas_[index].life != life) return;
  replica_record& replica = replicas_[index];
  if (!replica.course.is_alive()) return;
  if (!where.lost || where.lost->stage != where.at.stage) return fail_replica(index, why, where);
  if (!replica.missed) replica.missed = {why, where, clock_.now()};
  look_for_missed_rank(index);
}

/// If its process has ended, perhaps the step killed it. Otherwise two ranks have lost each other, which is no step's
/// doing.
void supervisor_state::look_for_missed_rank(std::size_t index) {
  const auto& missed = replicas_[index].missed;
  if (!missed) return;
  const bool is_gone = has_ended(index, *missed->where.lost);
  if (!is_gone && clock_.now() - missed->said_at < longest_news_of_an_end) return;
  const auto [why, where, said_at] = *missed;
  fail_replica(index, why, is_gone ? seat_failure{.at = *where.lost, .in_step = where.in_step} : where);
}

/// The head's own worker ends with the head.
bool supervisor_state::has_ended(std::size_t index, seat whose) const {
  const std::string* const name = worker_in(index, whose);
  const link_id link = name ? link_of(*name) : no_link;
  return link != no_link && !parts_.links->is_connected(link);
}

/// What a step cannot have brought comes from the first rank of the last stage.
void supervisor_state::reject_life(const life_rejected& rejected) {
  const std::size_t index = rejected.life.replica.value;
  if (index >= replicas_.size()) return;
  const auto stages = static_cast<std::uint32_t>(placement_->replicas[index].stages.size());
  end_life(rejected.life, rejected.why, {.at = {stages - 1, 0}, .in_step = true});
}

void supervisor_state::take_started(const stage_started& started) {
  const std::size_t index = started.life.replica.value;
  if (index >= replicas_.size() || replicas_[index].life != started.life) return;
  replica_course& course = replicas_[index].course;
  if (course.current() != replica_course::phase::starting) return;
  if (!started.error.empty())
    return fail_replica(index, fmt::format("stage {} cannot start: {}", started.stage, started.error),
                        {.at = {started.stage, started.tensor_rank}, .lost = started.lost});
  if (course.note_ready({started.stage, started.tensor_rank}, clock_.now())) announce(index);
}

/// To be called when all stages are ready.
void supervisor_state::announce(std::size_t index) {
  const replica_record& replica = replicas_[index];
  const replica_placement& where = placement_->replicas[index];
  replica_started started{replica.life, {}, where.kv_tokens / block_tokens};
  std::vector<worker_offer> offers;
  for (const stage_placement& stage : where.stages) {
    auto& ranks = started.stages.emplace_back();
    for (const std::string& name : stage.workers) {
      ranks.push_back(workers_.at(name).worker);
      offers.push_back(offers_.of(name));
    }
  }
  const int said = parts_.config.scheduler.steps_in_flight;
  started.steps_in_flight = said > 0 ? said : stages_at_once(where, offers);
  tell(replica.scheduler, std::move(started));
  parts_.say(fmt::format("replica {} serves with {} stage{}", index, where.stages.size(),
                         where.stages.size() == 1 ? "" : "s"));
}

void supervisor_state::retry_replicas(instant now) {
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    look_for_missed_rank(i);
    const auto due = replicas_[i].course.look(now, parts_.longest_start);
    if (due == replica_course::due::next_life && !gives_seat_to_spare(i)) start_replica(i);
    if (due == replica_course::due::failure)
      fail_replica(i, "a stage took too long to start", {.at = replicas_[i].course.missing_seat()});
  }
}

/// The worker that had the seat begins anew and becomes a spare in its turn.
bool supervisor_state::gives_seat_to_spare(std::size_t index) {
  const std::vector<seat> seats = replicas_[index].failures.to_replace();
  return std::ranges::any_of(seats, [&](seat whose) { return replaces_worker(index, whose); });
}

/// Returns false where nobody can take its place. The head's own worker goes with the head alone.
bool supervisor_state::replaces_worker(std::size_t index, seat whose) {
  const std::string* const seated = worker_in(index, whose);
  if (!seated) return false;
  const std::string name = *seated;
  const auto found = workers_.find(name);
  if (found == workers_.end() || found->second.link == no_link) return false;
  const placement_change after = repair(*placement_, name, offers_.all(), parts_.shape, parts_.wanted);
  if (after.effect != placement_change::kind::fills_stage || after.replica != index) return false;
  members_.give_up(found->second.incarnation, clock_.now());
  lose(name, "its stage fails again and again, and a spare takes its place", life_end::planned);
  return true;
}

/// Null where there is no such seat: a worker has said it.
const std::string* supervisor_state::worker_in(std::size_t index, seat whose) const {
  const auto& stages = placement_->replicas[index].stages;
  if (whose.stage >= stages.size() || whose.rank >= stages[whose.stage].workers.size()) return nullptr;
  return &stages[whose.stage].workers[whose.rank];
}

bool supervisor_state::other_runs(std::size_t index) const {
  for (std::size_t i = 0; i < replicas_.size(); ++i)
    if (i != index && replicas_[i].course.is_running()) return true;
  return false;
}

}  // namespace troupe
