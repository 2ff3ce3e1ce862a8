// What a scheduler reports to the router and posts on the board.
#include <algorithm>

#include "actors/replicas/scheduler_impl.hpp"

namespace troupe {
namespace {

constexpr duration report_interval = std::chrono::milliseconds(100);

constexpr std::size_t most_names = 64;  // in a list on the board

std::vector<std::string> names_of(std::vector<adapter_version> versions, const adapter_directory& directory) {
  std::sort(versions.begin(), versions.end());
  if (versions.size() > most_names) versions.resize(most_names);
  const auto known = directory.read();
  std::vector<std::string> names;
  for (const adapter_version version : versions)
    if (const auto details = known->versions.find(version); details != known->versions.end())
      names.push_back(details->second.full_name);
  return names;
}

}  // namespace

void scheduler_state::report_soon() {
  if (std::exchange(report_due_, true)) return;
  tell_after(self_, report_interval, wake{});
}

void scheduler_state::report() {
  std::erase_if(unloadable_, [now = clock_.now()](const auto& each) { return each.second <= now; });
  const bool busy = meter_.note_report(clock_.now());
  post_figures();  // first: whoever hears of it may look there
  tell(parts_.router, replica_state{parts_.replica, running_, load()});
  // Reports once more after the last token, to show the replica at rest. While requests wait for an adapter it goes on
  // reporting, since each wake also moves the scheduler's clock, and until every adapter may be tried again.
  const bool waits = requests_ && requests_->decisions().stats().waiting > 0;
  if (busy || waits || !unloadable_.empty()) report_soon();
}

replica_load scheduler_state::load() const {
  replica_load load;
  load.received = meter_.read().received;
  load.max_sequences = static_cast<std::uint32_t>(parts_.batches.max_sequences);
  load.max_waiting = static_cast<std::uint32_t>(parts_.batches.max_waiting);
  load.reuses_prefixes = !parts_.batches.keeps_states || parts_.batches.kept_beginnings > 0;
  if (!requests_) return load;
  const auto stats = requests_->decisions().stats();
  load.running = static_cast<std::uint32_t>(stats.running);
  load.waiting = static_cast<std::uint32_t>(stats.waiting);
  load.blocks = static_cast<std::uint32_t>(blocks_);
  load.free_blocks = static_cast<std::uint32_t>(requests_->decisions().cache().available());
  load.queued_tokens = requests_->decisions().queued_tokens();
  load.adapters = residency_->residents();
  for (const auto& [version, until] : unloadable_) load.unloadable.push_back(version);
  return load;
}

/// In all lives of the replica: whoever reads a counter takes it for a new one where it goes back.
scheduler_counters scheduler_state::counted() const {
  scheduler_counters all = earlier_;
  if (requests_) all += requests_->decisions().stats();
  return all;
}

void scheduler_state::post_figures() const {
  replica_figures figures;
  figures.ready = running_;
  figures.stages = stages_.size();
  figures.epoch = life_.epoch;
  figures.load = load();
  figures.meter = meter_.read();
  figures.max_adapters = parts_.batches.max_adapters;
  figures.resident_adapters = names_of(figures.load.adapters, *parts_.adapters);
  figures.scheduling = counted();
  if (requests_) {
    std::vector<adapter_version> running, waiting;
    requests_->decisions().adapters().visit([&](const detail::adapter_use& use) {
      if (use.running > 0) running.push_back(use.adapter);
      if (use.waiting > 0) waiting.push_back(use.adapter);
    });
    figures.running_adapters = names_of(std::move(running), *parts_.adapters);
    figures.waiting_adapters = names_of(std::move(waiting), *parts_.adapters);
  }
  parts_.board->post_replica(parts_.replica, std::move(figures));
}

}  // namespace troupe
