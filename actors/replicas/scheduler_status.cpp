// What a scheduler reports to the router and posts on the board.
#include <algorithm>

#include <fmt/format.h>

#include "actors/replicas/scheduler.hpp"

namespace troupe {
namespace {

constexpr duration report_interval = std::chrono::milliseconds(100);

constexpr std::size_t most_names = 64;  ///< in a list on the board

/// Appends ,"key":["pricing@2",…]. Names need no escapes in JSON.
void append_names(std::string& to, std::string_view key, std::vector<adapter_version> versions,
                  const adapter_directory& directory) {
  std::sort(versions.begin(), versions.end());
  if (versions.size() > most_names) versions.resize(most_names);
  const auto known = directory.read();
  std::string names;
  for (const adapter_version version : versions) {
    const auto details = known->versions.find(version);
    if (details == known->versions.end()) continue;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ",", details->second.full_name);
  }
  to += fmt::format(",\"{}\":[{}]", key, names);
}

}  // namespace

void scheduler_state::report_soon() {
  if (std::exchange(report_due_, true)) return;
  tell_after(self_, report_interval, wake{});
}

void scheduler_state::report() {
  report_due_ = false;
  const bool busy = meter_.note_report(clock_.now());
  tell(parts_.router, replica_state{parts_.replica, running_, load()});
  post_status();
  // Reports once more after the last token, to show the replica at rest. While requests wait for an adapter it goes on
  // reporting, since each wake also moves the scheduler's clock.
  if (busy || (requests_ && requests_->decisions().stats().waiting > 0)) report_soon();
}

replica_load scheduler_state::load() const {
  replica_load load;
  load.received = meter_.read().received;
  if (!requests_) return load;
  const auto stats = requests_->decisions().stats();
  load.running = static_cast<std::uint32_t>(stats.running);
  load.waiting = static_cast<std::uint32_t>(stats.waiting);
  load.max_sequences = static_cast<std::uint32_t>(parts_.batches.max_sequences);
  load.max_waiting = static_cast<std::uint32_t>(parts_.batches.max_waiting);
  load.blocks = static_cast<std::uint32_t>(blocks_);
  load.free_blocks = static_cast<std::uint32_t>(requests_->decisions().cache().available());
  load.queued_tokens = requests_->decisions().queued_tokens();
  load.tokens_per_second = meter_.read().tokens_per_second;
  load.adapters = residency_->residents();
  return load;
}

void scheduler_state::post_status() const {
  parts_.board->post(fmt::format("replica.{:04}", parts_.replica.value), status_json());
}

std::string scheduler_state::status_json() const {
  const replica_load now = load();
  const scheduler_meter::figures& so_far = meter_.read();
  const auto stats = requests_ ? requests_->decisions().stats() : batch_scheduler::statistics{};
  std::vector<adapter_version> running, waiting;
  if (requests_)
    requests_->decisions().adapters().visit([&](const detail::adapter_use& use) {
      if (use.running > 0) running.push_back(use.adapter);
      if (use.waiting > 0) waiting.push_back(use.adapter);
    });
  const auto seconds = [](duration d) { return std::chrono::duration<double>(d).count(); };
  std::string text =
      fmt::format(R"({{"ready":{},"running":{},"waiting":{},"max_sequences":{},"blocks":{},"free_blocks":{},)"
                  R"("tokens_per_second":{:.1f},"tokens":{},"steps":{},"preemptions":{},"computed_tokens":{},)"
                  R"("reused_tokens":{},"resident_adapters":{},"max_adapters":{},"epoch":{},"lives":{},"resumed":{},)"
                  R"("active_seconds":{:.3f},"bubble_seconds":{:.3f})",
                  running_, now.running, now.waiting, parts_.batches.max_sequences, now.blocks, now.free_blocks,
                  now.tokens_per_second, so_far.tokens, stats.steps, stats.preemptions, stats.computed_tokens,
                  stats.reused_tokens, now.adapters.size(), parts_.batches.max_adapters, life_.epoch.value,
                  so_far.lives, so_far.resumed, seconds(so_far.active), seconds(so_far.bubble));
  append_names(text, "resident", now.adapters, *parts_.adapters);
  append_names(text, "running_adapters", running, *parts_.adapters);
  append_names(text, "waiting_adapters", waiting, *parts_.adapters);
  return text + "}";
}

}  // namespace troupe
