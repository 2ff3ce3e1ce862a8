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
        if (role_ && role_->life == order.life) tell(parts_.fetcher, order);
      },
      [this](const drop_adapter& order) { drop(order); },
      [this](const prepare_adapter& order) { tell(parts_.fetcher, order); },
      [this](const adapter_ready& ready) { take_adapter(ready); },
      [this](forget_life) { forget_all(); },
      [this](const link_lost& lost) {
        if (lost.link == next_ && next_ != no_link)
          fail(fmt::format("the link to the next stage closed: {}", lost.end.why), true);
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
    role_ = order;
    tell(parts_.fetcher, stage_layers{order.first_layer, order.layers});
  } else {
    answer.lost_next = next_ != no_link;  // to reach it is the last thing that is tried
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
  // The memory is cleared at once: many gigabytes take many seconds.
  const bool keeps_states = parts_.model->config.keeps_states();
  parts_.say(fmt::format("gets ready for layers {} to {}, with memory for {} positions{}", order.first_layer,
                         order.first_layer + order.layers - 1, order.blocks * block_tokens,
                         keeps_states ? fmt::format(" and {} states", order.states) : ""));
  // Ranks meet before the layers are read: they wait for each other only for a while, and reading takes longer for one
  // whose disk cache is cold.
  if (order.tensor_ranks > 1) ranks_ = std::make_unique<stage_ranks>(order, parts_.ranks, parts_.device, stop);
  parts_.preload(*parts_.model, order.first_layer, order.layers);
  const decoder::options part{.first_layer = order.first_layer,
                              .layers = order.layers,
                              .max_rows = order.max_rows,
                              .max_sequences = order.max_sequences,
                              .kv = order.kv,
                              .blocks = order.blocks,
                              .states = order.states,
                              .context = order.context,
                              .split = ranks_ ? ranks_->split() : tensor_split{},
                              .device = parts_.device};
  stage_ = std::make_unique<stage>(parts_.model, part, order.lookup_tokens, compute{*pool_, kernels()}, parts_.tokens);
  if (const std::string remark = stage_->remark(); !remark.empty()) parts_.say(remark);
  if (!order.next.empty()) reach_next(order.next, stop);
}

/// The head may reach both stages though they do not reach each other. A life in which they do not must not begin: its
/// requests would count as those that ended it.
void worker_state::reach_next(const std::string& endpoint, const std::stop_token& stop) {
  next_ = parts_.links->connect(endpoint, dialing::until_forgotten);
  if (parts_.links->wait_up(next_, parts_.reach_patience, stop)) return;
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

void worker_state::forget() {
  role_.reset();
  stage_.reset();
  ranks_.reset();
  orders_.clear();
  opened_ahead_.clear();
  arrived_.clear();
  buffers_.clear();  // the next life may need larger ones
  if (next_ != no_link) parts_.links->close(std::exchange(next_, no_link));
  tell(parts_.fetcher, stage_ended{});
}

/// Not only the stage: nobody waits for adapters that were to be prepared, either.
void worker_state::forget_all() {
  tell(parts_.fetcher, forget_life{});
  forget();
}

void worker_state::fail(const std::string& error, bool lost_next) {
  if (!role_) return;
  tell(parts_.head, stage_failed{role_->life, role_->stage, role_->tensor_rank, lost_next, error});
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
  } catch (const std::bad_alloc&) {
    return no_memory;
  } catch (const std::exception& error) {
    return error.what();
  }
}

// --- steps ---

void worker_state::take_order(run_step& order) {
  if (!role_ || order.life != role_->life) return;
  std::vector<answer_opening>& opened = order.step.opened;
  std::move(opened.begin(), opened.end(), std::back_inserter(opened_ahead_));
  if (opened_ahead_.size() > most_opened) return fail("a step opens more answers than can run");
  if (order.goes_on) return;
  opened = std::exchange(opened_ahead_, {});
  orders_.push_back(std::move(order));
  if (orders_.size() > most_waiting) return fail("orders pile up");
  advance();
}

void worker_state::take_hidden(activations& hidden) {
  if (!role_ || hidden.life != role_->life || stage_->is_first()) return;
  arrived_[hidden.step] = std::move(hidden.attachment);
  if (arrived_.size() > most_waiting) return fail("hidden states pile up");
  advance();
}

bool worker_state::can_run(const run_step& order) const {
  return stage_->is_first() || arrived_.contains(order.step.plan.id);
}

void worker_state::advance() {
  while (role_ && !orders_.empty() && can_run(orders_.front())) run_front();
}

void worker_state::run_front() {
  const run_step order = std::move(orders_.front());
  orders_.pop_front();
  parts_.meter->begin_step();
  if (const auto fault = fault_of([&] { run_order(order); }, "no memory for a step"); !fault.empty()) fail(fault);
  parts_.meter->end_step(order.step.plan.tokens.size());
}

void worker_state::run_order(const run_step& order) {
  if (ranks_) ranks_->set_busy(true);  // if the step fails, this stays set; the end of the stage releases the others
  const int rows = stage_->begin(order.step);
  const auto stride = to_size(stage_->hidden_stride()), size = to_size(rows) * stride;
  const std::shared_ptr<float> hidden = buffers_.take(size, to_size(role_->max_rows) * stride);
  fill(hidden.get(), order.step.plan.id, size);
  stage_->run(hidden.get());
  if (stage_->is_last()) {
    if (stage_->chooses() && stage_->goes_ahead()) tell(parts_.head, step_ending{role_->life, order.step.plan.id});
    const step_outcome& outcome = stage_->finish(hidden.get());
    if (stage_->chooses()) tell(parts_.head, step_done{role_->life, outcome});
  } else {
    const auto bytes = std::as_bytes(std::span<const float>(hidden.get(), size));
    parts_.links->send(next_, activations{role_->life, order.step.plan.id, {hidden, bytes}});
  }
  if (ranks_) ranks_->set_busy(false);
}

/// The first stage makes the hidden states; the others copy what arrived to memory that is aligned for the kernels.
void worker_state::fill(float* hidden, step_id step, std::size_t size) {
  if (stage_->is_first()) return stage_->embed(hidden);
  const auto arrived = arrived_.extract(step);
  const auto bytes = arrived.mapped().bytes();
  if (bytes.size() != size * sizeof(float))
    refuse("step {} came with {} bytes of hidden states instead of {}", step.value, bytes.size(), size * sizeof(float));
  std::memcpy(hidden, bytes.data(), bytes.size());
}

void worker_state::take_adapter(const adapter_ready& ready) {
  if (!role_ || ready.order.life != role_->life) return;
  const std::string error = ready.adapter ? add_adapter(ready) : ready.error;
  tell(parts_.head, adapter_loaded{.life = role_->life, .version = ready.order.version, .error = error});
}

/// What goes wrong is said as adapter_fetcher says it: to this node's log, and elsewhere with the node's name.
std::string worker_state::add_adapter(const adapter_ready& ready) {
  const load_adapter& order = ready.order;
  const std::string error =
      fault_of([&] { stage_->add_adapter(order.version, ready.adapter); }, "no memory for it: lower adapters.memory");
  if (error.empty()) {
    refused_adapters_.forget(order.sha256);
    return {};
  }
  if (refused_adapters_.is_news(order.sha256, error))
    parts_.say(fmt::format("adapter {} cannot be loaded here: {}", order.full_name, error));
  return fmt::format("node {}: adapter {}: {}", parts_.node, order.full_name, error);
}

void worker_state::drop(const drop_adapter& order) {
  if (!role_ || role_->life != order.life) return;
  if (const auto fault = fault_of([&] { stage_->remove_adapter(order.version); }, {}); !fault.empty()) fail(fault);
}

worker_actor spawn_worker(caf::actor_system& system, worker_parts parts) {
  return spawn_state<worker_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
