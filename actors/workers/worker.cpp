#include "actors/workers/worker.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/device_lost.hpp"
#include "base/error.hpp"
#include "base/to_size.hpp"
#include "cluster/config/config.hpp"
#include "model/ops/isa.hpp"
#include "transport/collective/collective.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_waiting = scheduler_settings::most_steps_in_flight;  // a peer that sends more is wrong
constexpr std::size_t most_opened = scheduler_settings::most_sequences;

}  // namespace

worker_state::worker_state(handle::pointer self, worker_parts parts)
    : self_(self), parts_(std::move(parts)), pool_(std::make_unique<thread_pool>(parts_.threads)) {}

worker_state::handle::behavior_type worker_state::make_behavior() {
  return {
      [this](const start_stage& order) { start(order); },
      [this](run_step& order) { take_order(order); },
      [this](activations& hidden) { take_hidden(hidden); },
      [this](const load_adapter& order) {
        if (held_in(order.life)) tell(parts_.fetcher, order);
      },
      [this](const drop_adapter& order) { drop(order); },
      [this](const prepare_adapter& order) { tell(parts_.fetcher, order); },
      [this](const adapter_ready& ready) { take_adapter(ready); },
      [this](forget_life) { forget_all(); },
      [this](const link_lost& lost) {
        if (!held_ || held_->next == no_link || held_->next != lost.link) return;
        held_->lost = held_->next_seat();
        fail(fmt::format("the link to the next stage closed: {}", lost.end.why));
      },
      [this](stop_now) {
        forget_all();
        self_->quit();
      },
  };
}

// --- a life ---

void worker_state::start(const start_stage& order) {
  const std::stop_token stop = parts_.alarm->begin();
  forget();
  stage_started answer{.life = order.life, .stage = order.stage, .tensor_rank = order.tensor_rank};
  answer.error =
      fault_of([&] { make_stage(order, stop); },
               fmt::format("no memory for layers {} to {} and {} blocks of 16 positions: lower scheduler.kv_memory",
                           order.first_layer, order.first_layer + order.layers - 1, order.blocks));
  if (answer.error.empty()) {
    tell(parts_.fetcher, stage_layers{order.first_layer, order.layers});
  } else {
    if (held_) answer.lost = held_->lost;
    forget();
  }
  tell(parts_.head, std::move(answer));
}

/// Refuses a stage that this model cannot have, and sizes that no right head asks for.
void worker_state::check_order(const start_stage& order) const {
  const auto layers = parts_.model->config.layers;
  if (order.first_layer < 0 || order.layers < 1 || order.layers > layers || order.first_layer > layers - order.layers)
    refuse("layers {} to {} of a model of {}", order.first_layer, order.first_layer + order.layers - 1, layers);
  if (order.blocks < 1 || order.blocks > 1 << 30 || order.context < 1 || order.max_rows < 1 ||
      order.max_rows > 1 << 20 || order.max_sequences < 1 || order.max_sequences > scheduler_settings::most_sequences ||
      order.states < order.max_sequences || order.states > 2 * scheduler_settings::most_sequences)
    refuse("a stage with {} blocks, {} positions, {} rows, {} sequences and {} states", order.blocks, order.context,
           order.max_rows, order.max_sequences, order.states);
  check_links(order);
}

void worker_state::make_stage(const start_stage& order, const std::stop_token& stop) {
  check_order(order);
  held_stage& made = held_.emplace(held_stage{.role = order});
  // The memory is cleared at once: many gigabytes take many seconds.
  const bool keeps_states = parts_.model->config.keeps_states();
  parts_.say(fmt::format("gets ready for layers {} to {}, with memory for {} positions{}", order.first_layer,
                         order.first_layer + order.layers - 1, order.blocks * block_tokens,
                         keeps_states ? fmt::format(" and {} states", order.states) : ""));
  // Ranks meet before the layers are read: they wait for each other only for a while, and reading takes longer for one
  // whose disk cache is cold.
  if (order.tensor_ranks > 1) made.ranks = std::make_unique<stage_ranks>(order, parts_.ranks, parts_.device, stop);
  parts_.preload(*parts_.model, order.first_layer, order.layers);
  const decoder::options part{.first_layer = order.first_layer,
                              .layers = order.layers,
                              .max_rows = order.max_rows,
                              .max_sequences = order.max_sequences,
                              .kv = order.kv,
                              .blocks = order.blocks,
                              .states = order.states,
                              .context = order.context,
                              .split = made.ranks ? made.ranks->split() : tensor_split{},
                              .device = parts_.device};
  made.layers =
      std::make_unique<stage>(parts_.model, part, order.lookup_tokens, compute{*pool_, kernels()}, parts_.tokens);
  if (const std::string remark = made.layers->remark(); !remark.empty()) parts_.say(remark);
  if (!order.next.empty()) reach_next(order.next, stop);
}

/// The head may reach both stages though they do not reach each other. A life in which they do not must not begin: its
/// requests would count as those that ended it.
void worker_state::reach_next(const std::string& endpoint, const std::stop_token& stop) {
  held_->next = parts_.links->connect(endpoint, dialing::until_forgotten);
  if (parts_.links->wait_up(held_->next, parts_.reach_patience, stop)) return;
  held_->lost = held_->next_seat();
  refuse("{}: the next stage is there and does not answer: see that this machine can connect to it", endpoint);
}

/// Refuses a stage whose frames are too long for this process' links: they would close the link in every life.
void worker_state::check_links(const start_stage& order) const {
  const step_sizes& own = parts_.largest_steps;
  step_sizes asked;
  asked.rows = static_cast<std::uint64_t>(order.max_rows);
  asked.sequences = static_cast<std::uint64_t>(order.max_sequences);
  asked.hidden = static_cast<std::uint64_t>(parts_.model->config.hidden);
  asked.context = static_cast<std::uint64_t>(order.context);
  if (!have_room_for(asked, own))
    refuse(
        "the head's steps have up to {} tokens, {} sequences and {} positions, and this node's links are made for {}, "
        "{} and {}: give its file the scheduler.max_batch_tokens, scheduler.max_sequences and model.context of the "
        "head's",
        asked.rows, asked.sequences, asked.context, own.rows, own.sequences, own.context);
}

/// Null if none is held, or one of another life.
held_stage* worker_state::held_in(const replica_life& life) {
  return held_ && held_->role.life == life ? &*held_ : nullptr;
}

void worker_state::forget() {
  const link_id next = held_ ? held_->next : no_link;
  held_.reset();
  if (next != no_link) parts_.links->close(next);
  tell(parts_.fetcher, stage_ended{});
}

/// Not only the stage: nobody waits for adapters that were to be prepared, either.
void worker_state::forget_all() {
  tell(parts_.fetcher, forget_life{});
  forget();
}

void worker_state::fail(const std::string& error) {
  if (!held_) return;
  const start_stage& role = held_->role;
  tell(parts_.head, stage_failed{role.life, role.stage, role.tensor_rank, held_->lost, error});
  forget();
}

template <class Work>
std::string worker_state::fault_of(Work work, const std::string& no_memory) {
  try {
    work();
    return {};
  } catch (const device_lost& error) {
    parts_.on_device_lost(error.what());
    return error.what();
  } catch (const collective_failure& error) {
    if (held_ && error.peer()) held_->lost = {held_->role.stage, static_cast<std::uint32_t>(*error.peer())};
    return error.what();
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (const std::exception& error) {
    return error.what();
  }
}

// --- steps ---

bool held_stage::can_run_next() const {
  return !orders.empty() && (layers->is_first() || arrived.contains(orders.front().step.plan.id));
}

/// The first stage makes the hidden states; the others copy what arrived to memory that is aligned for the kernels.
void held_stage::fill(float* hidden, step_id step, std::size_t size) {
  if (layers->is_first()) return layers->embed(hidden);
  const auto came = arrived.extract(step);
  const auto bytes = came.mapped().bytes();
  if (bytes.size() != size * sizeof(float))
    refuse("step {} came with {} bytes of hidden states instead of {}", step.value, bytes.size(), size * sizeof(float));
  std::memcpy(hidden, bytes.data(), bytes.size());
}

void worker_state::take_order(run_step& order) {
  held_stage* const held = held_in(order.life);
  if (!held) return;
  std::vector<answer_opening>& opened = order.step.opened;
  std::move(opened.begin(), opened.end(), std::back_inserter(held->opened_ahead));
  if (held->opened_ahead.size() > most_opened) return fail("a step opens more answers than can run");
  if (order.goes_on) return;
  opened = std::exchange(held->opened_ahead, {});
  held->orders.push_back(std::move(order));
  if (held->orders.size() > most_waiting) return fail("orders pile up");
  advance();
}

void worker_state::take_hidden(activations& hidden) {
  held_stage* const held = held_in(hidden.life);
  if (!held || held->layers->is_first()) return;
  held->arrived[hidden.step] = std::move(hidden.attachment);
  if (held->arrived.size() > most_waiting) return fail("hidden states pile up");
  advance();
}

void worker_state::advance() {
  while (held_ && held_->can_run_next()) run_front();
}

void worker_state::run_front() {
  const run_step order = std::move(held_->orders.front());
  held_->orders.pop_front();
  parts_.meter->begin_step();
  if (const auto fault = fault_of([&] { run_order(*held_, order); }, "no memory for a step"); !fault.empty())
    fail(fault);
  parts_.meter->end_step(order.step.plan.tokens.size());
}

void worker_state::run_order(held_stage& held, const run_step& order) {
  // If the step fails, this stays set; the end of the stage releases the others.
  if (held.ranks) held.ranks->set_busy(true);
  stage& layers = *held.layers;
  const replica_life& life = held.role.life;
  const int rows = layers.begin(order.step);
  const auto stride = to_size(layers.hidden_stride()), size = to_size(rows) * stride;
  const std::shared_ptr<float> hidden = held.buffers.take(size, to_size(held.role.max_rows) * stride);
  held.fill(hidden.get(), order.step.plan.id, size);
  layers.run(hidden.get());
  if (layers.is_last()) {
    if (layers.chooses() && layers.goes_ahead()) tell(parts_.head, step_ending{life, order.step.plan.id});
    const step_outcome& outcome = layers.finish(hidden.get());
    if (layers.chooses()) tell(parts_.head, step_done{life, outcome});
  } else {
    const auto bytes = std::as_bytes(std::span<const float>(hidden.get(), size));
    parts_.links->send(held.next, activations{life, order.step.plan.id, {hidden, bytes}});
  }
  if (held.ranks) held.ranks->set_busy(false);
}

void worker_state::take_adapter(const adapter_ready& ready) {
  if (!held_in(ready.order.life)) return;
  const std::string error = ready.adapter ? add_adapter(ready) : ready.error;
  tell(parts_.head, adapter_loaded{.life = ready.order.life, .version = ready.order.version, .error = error});
}

/// What goes wrong is said as adapter_fetcher says it: to this node's log, and elsewhere with the node's name.
std::string worker_state::add_adapter(const adapter_ready& ready) {
  const load_adapter& order = ready.order;
  const std::string error = fault_of([&] { held_->layers->add_adapter(order.version, ready.adapter); },
                                     "no memory for it: lower adapters.memory");
  if (error.empty()) {
    refused_adapters_.forget(order.sha256);
    return {};
  }
  if (refused_adapters_.is_news(order.sha256, error))
    parts_.say(fmt::format("adapter {} cannot be loaded here: {}", order.full_name, error));
  return fmt::format("node {}: adapter {}: {}", parts_.node, order.full_name, error);
}

void worker_state::drop(const drop_adapter& order) {
  if (!held_in(order.life)) return;
  if (const auto fault = fault_of([&] { held_->layers->remove_adapter(order.version); }, {}); !fault.empty())
    fail(fault);
}

worker_actor spawn_worker(caf::actor_system& system, worker_parts parts) {
  return spawn_state<worker_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
