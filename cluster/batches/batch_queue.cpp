#include "cluster/batches/batch_queue.hpp"

#include <algorithm>

namespace troupe {

void batch_queue::add(job added) {
  const auto [place, is_new] = jobs_.try_emplace(added.id);
  if (!is_new) return;
  entry& made = place->second;
  made.what = std::move(added);
  made.number = added_++;
  share& its = shares_[made.what.tenant];
  ++its.jobs;
  its.next.push_back(&made);
}

const batch_queue::job* batch_queue::find(const std::string& id) const {
  const auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : &found->second.what;
}

void batch_queue::remove(const std::string& id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  const auto its = shares_.find(found->second.what.tenant);
  its->second.open -= found->second.open;
  std::erase(its->second.next, &found->second);
  if (--its->second.jobs == 0) shares_.erase(its);
  std::erase_if(again_, [&](const line& each) { return each.job == id; });
  begun_.erase(id);
  jobs_.erase(found);
}

std::optional<batch_queue::line> batch_queue::next(instant now) {
  if (now < paused_until_) return {};
  if (!again_.empty()) {
    line one = std::move(again_.front());
    again_.pop_front();
    return one;
  }
  while (share* turn = whose_turn())
    if (auto one = take_from(*turn)) return one;
  return {};
}

/// Of two that use as much of theirs, the one whose job is older.
bool batch_queue::share::goes_before(const share& other) const {
  const double mine = used(), its = other.used();
  return mine != its ? mine < its : next.front()->number < other.next.front()->number;
}

/// Who has the fewest lines open for its weight, of those with jobs that are not read to their end.
batch_queue::share* batch_queue::whose_turn() {
  share* first = nullptr;
  for (auto& [tenant, each] : shares_)
    if (!each.next.empty() && (!first || each.goes_before(*first))) first = &each;
  return first;
}

/// Its oldest job's next line.
std::optional<batch_queue::line> batch_queue::take_from(share& turn) {
  entry& oldest = *turn.next.front();
  if (oldest.read.empty()) {
    const auto lines = read_(oldest.what.id, oldest.from);
    begun_.insert(oldest.what.id);
    if (lines.empty()) {
      turn.next.pop_front();
      return {};
    }
    oldest.from = lines.back().index + 1;
    oldest.read.assign(lines.begin(), lines.end());
  }
  line one{oldest.what.id, oldest.read.front().index, std::move(oldest.read.front().text)};
  oldest.read.pop_front();
  ++oldest.open;
  ++turn.open;
  return one;
}

void batch_queue::put_back(line one, instant until) {
  again_.push_back(std::move(one));
  paused_until_ = std::max(paused_until_, until);
}

void batch_queue::note_recorded(const std::string& job) {
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  --found->second.open;
  --shares_.at(found->second.what.tenant).open;
}

std::vector<std::string> batch_queue::at_rest() const {
  std::vector<std::string> found;
  for (const std::string& id : begun_) {
    const entry& job = jobs_.at(id);
    if (job.read.empty() && job.open == 0) found.push_back(id);
  }
  return found;
}

}  // namespace troupe
