#include "cluster/batches/batch_queue.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

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
  share->second.open -= found->second.open;
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
  if (!aside_.empty() && aside_.begin()->first <= now) return std::move(aside_.extract(aside_.begin()).mapped());
  while (share* turn = whose_turn())
    if (auto taken = take_from(*turn)) return taken;
  return {};
}

batch_queue::entry* batch_queue::share::oldest_that_works() const {
  const auto found = std::find_if(unread.begin(), unread.end(), [](const entry* each) { return !each->is_failing; });
  return found == unread.end() ? nullptr : *found;
}

/// Of two tenants that use as much of their shares, the one with the older job goes first.
bool batch_queue::share::goes_before(const share& other) const {
  const double own = used(), others = other.used();
  return own != others ? own < others : unread.front()->number < other.unread.front()->number;
}

/// The tenant with the fewest open lines for its weight, among those with jobs of which new lines may be read.
batch_queue::share* batch_queue::whose_turn() {
  share* first = nullptr;
  for (auto& [tenant, each] : shares_)
    if (each.oldest_that_works() && (!first || each.goes_before(*first))) first = &each;
  return first;
}

/// The next line of its oldest job that may go on.
std::optional<batch_queue::line> batch_queue::take_from(share& tenant) {
  entry& oldest = *tenant.oldest_that_works();
  if (oldest.ahead.empty()) {
    const auto lines = read_(oldest.spec.id, oldest.from);
    begun_.insert(oldest.spec.id);
    if (lines.empty()) {
      std::erase(tenant.unread, &oldest);
      return {};
    }
    oldest.from = lines.back().index + 1;
    oldest.ahead.assign(lines.begin(), lines.end());
  }
  line taken{oldest.spec.id, oldest.ahead.front().index, std::move(oldest.ahead.front().text)};
  oldest.ahead.pop_front();
  ++oldest.open;
  ++tenant.open;
  return taken;
}

std::optional<duration> batch_queue::wait_after(line& refused, duration retry_after) const {
  if (retry_after > duration{}) return std::max(retry_after, options_.shortest_retry);
  if (++refused.refusals >= options_.most_tries) return {};
  return std::min(options_.shortest_retry * (1 << std::min(refused.refusals, 20)), options_.longest_retry);
}

void batch_queue::put_back(line refused, instant until) {
  again_.push_back(std::move(refused));
  paused_until_ = std::max(paused_until_, until);
}

bool batch_queue::put_aside(line failed, instant until) {
  const auto found = jobs_.find(failed.job);
  if (found == jobs_.end()) return false;
  aside_.emplace(until, std::move(failed));
  return !std::exchange(found->second.is_failing, true);
}

void batch_queue::note_recorded(const std::string& job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  found->second.is_failing = false;
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
