#include "cluster/batches/batch_queue.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

/// Before a line is tried again whose refusals do not say when to come back. With as many tries as it has, somebody has
/// an hour to free a full disk.
constexpr duration longest_pause = std::chrono::minutes(1);

}  // namespace

void batch_queue::add(job added) {
  const auto [place, is_new] = jobs_.try_emplace(added.id);
  if (!is_new) return;
  entry& entry = place->second;
  entry.spec = std::move(added);
  entry.number = added_++;
  share& share = shares_[entry.spec.tenant];
  ++share.jobs;
  share.unread.push_back(&entry);
}

const batch_queue::job* batch_queue::find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second.spec;
}

void batch_queue::remove(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  const auto share = shares_.find(found->second.spec.tenant);
  share->second.open -= found->second.open - found->second.aside;
  std::erase(share->second.unread, &found->second);
  if (--share->second.jobs == 0) shares_.erase(share);
  std::erase_if(again_, [&](const line& each) { return each.job == id; });
  std::erase_if(aside_, [&](const auto& each) { return each.second.job == id; });
  begun_.erase(id);
  jobs_.erase(found);
}

std::optional<batch_queue::line> batch_queue::next(instant now) {
  if (now < paused_until_) return {};
  if (!again_.empty()) {
    line first = std::move(again_.front());
    again_.pop_front();
    return first;
  }
  if (!aside_.empty() && aside_.begin()->first <= now) return take_from_aside();
  for (candidate turn = whose_turn(); turn.job; turn = whose_turn())
    if (auto taken = take_from(turn)) return taken;
  return {};
}

batch_queue::line batch_queue::take_from_aside() {
  line taken = std::move(aside_.extract(aside_.begin()).mapped());
  entry& job = jobs_.at(taken.job);
  --job.aside;
  ++shares_.at(job.spec.tenant).open;
  return taken;
}

batch_queue::entry* batch_queue::oldest_to_read(const share& tenant) const {
  const auto found = std::find_if(tenant.unread.begin(), tenant.unread.end(), [this](const entry* each) {
    return !each->is_failing && each->aside < options_.most_aside;
  });
  return found == tenant.unread.end() ? nullptr : *found;
}

/// Of two tenants that use as much of their shares, the one with the older job goes first.
bool batch_queue::candidate::goes_before(const candidate& other) const {
  const double own = used(), others = other.used();
  return own != others ? own < others : job->number < other.job->number;
}

/// The tenant with the fewest open lines for its weight.
batch_queue::candidate batch_queue::whose_turn() {
  candidate first;
  for (auto& [tenant, each] : shares_) {
    const candidate next{&each, oldest_to_read(each)};
    if (next.job && (!first.job || next.goes_before(first))) first = next;
  }
  return first;
}

/// The job's next line.
std::optional<batch_queue::line> batch_queue::take_from(const candidate& turn) {
  entry& job = *turn.job;
  if (job.ahead.empty()) {
    const auto lines = read_(job.spec.id, job.from);
    begun_.insert(job.spec.id);
    if (lines.empty()) {
      std::erase(turn.tenant->unread, &job);
      return {};
    }
    job.from = lines.back().index + 1;
    job.ahead.assign(lines.begin(), lines.end());
  }
  line taken{job.spec.id, job.ahead.front().index, std::move(job.ahead.front().text)};
  job.ahead.pop_front();
  ++job.open;
  ++turn.tenant->open;
  return taken;
}

std::optional<duration> batch_queue::wait_after(line& refused, duration retry_after) {
  if (retry_after > duration{}) return std::max(retry_after, options_.shortest_retry);
  const auto job = jobs_.find(refused.job);
  const bool is_hopeless = job != jobs_.end() && job->second.is_hopeless;
  if (++refused.refusals >= options_.most_tries || is_hopeless) {
    if (job != jobs_.end()) job->second.is_hopeless = true;
    return {};
  }
  return std::min(options_.shortest_retry * (1 << std::min(refused.refusals, 20)), longest_pause);
}

void batch_queue::put_back(line refused, instant until) {
  again_.push_back(std::move(refused));
  paused_until_ = std::max(paused_until_, until);
}

bool batch_queue::put_aside(line failed, instant until) {
  const auto found = jobs_.find(failed.job);
  if (found == jobs_.end()) return false;
  aside_.emplace(until, std::move(failed));
  ++found->second.aside;
  --shares_.at(found->second.spec.tenant).open;
  return !std::exchange(found->second.is_failing, true);
}

void batch_queue::note_recorded(const std::string& job, bool is_answer) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  found->second.is_failing = false;
  if (is_answer) found->second.is_hopeless = false;
  --found->second.open;
  --shares_.at(found->second.spec.tenant).open;
}

std::vector<std::string> batch_queue::at_rest() const {
  std::vector<std::string> found;
  for (const std::string& id : begun_) {
    const entry& job = jobs_.at(id);
    if (job.ahead.empty() && job.open == 0) found.push_back(id);
  }
  return found;
}

}  // namespace troupe
