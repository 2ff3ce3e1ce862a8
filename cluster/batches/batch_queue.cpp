#include "cluster/batches/batch_queue.hpp"

#include <algorithm>
#include <string_view>

namespace troupe {

void batch_queue::add(job added) {
  if (!find(added.id)) jobs_.push_back({std::move(added)});
}

const batch_queue::job* batch_queue::find(const std::string& id) const {
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), [&](const entry& each) { return each.what.id == id; });
  return found == jobs_.end() ? nullptr : &found->what;
}

void batch_queue::remove(const std::string& id) {
  std::erase_if(jobs_, [&](const entry& each) { return each.what.id == id; });
  std::erase_if(again_, [&](const line& each) { return each.job == id; });
}

std::optional<batch_queue::line> batch_queue::next(instant now) {
  if (now < paused_until_) return {};
  if (!again_.empty()) {
    line one = std::move(again_.front());
    again_.pop_front();
    return one;
  }
  while (entry* turn = whose_turn())
    if (auto one = take_from(*turn)) return one;
  return {};
}

/// Of the tenant that has the fewest lines open for its weight: the oldest that is not read to its end.
batch_queue::entry* batch_queue::whose_turn() {
  struct share {
    std::string_view tenant;
    std::size_t open = 0;
    entry* next = nullptr;
    double used() const { return static_cast<double>(open) / static_cast<double>(next->what.weight); }
  };
  std::vector<share> shares;
  for (entry& each : jobs_) {
    auto its = std::find_if(shares.begin(), shares.end(), [&](const share& s) { return s.tenant == each.what.tenant; });
    if (its == shares.end()) its = shares.insert(its, {each.what.tenant});
    its->open += each.open;
    if (!its->next && each.may_have_lines()) its->next = &each;
  }
  std::erase_if(shares, [](const share& each) { return !each.next; });
  const auto least = std::min_element(shares.begin(), shares.end(),
                                      [](const share& a, const share& b) { return a.used() < b.used(); });
  return least == shares.end() ? nullptr : least->next;
}

std::optional<batch_queue::line> batch_queue::take_from(entry& turn) {
  if (turn.read.empty()) {
    const auto lines = read_(turn.what.id, turn.from);
    turn.is_all_read = lines.empty();
    if (lines.empty()) return {};
    turn.from = lines.back().index + 1;
    turn.read.assign(lines.begin(), lines.end());
  }
  line one{turn.what.id, turn.read.front().index, std::move(turn.read.front().text)};
  turn.read.pop_front();
  ++turn.open;
  return one;
}

void batch_queue::put_back(line one, instant until) {
  again_.push_back(std::move(one));
  paused_until_ = std::max(paused_until_, until);
}

void batch_queue::note_recorded(const std::string& job) {
  for (entry& each : jobs_)
    if (each.what.id == job) --each.open;
}

std::vector<std::string> batch_queue::at_rest() const {
  std::vector<std::string> found;
  for (const entry& each : jobs_)
    if (each.read.empty() && each.open == 0) found.push_back(each.what.id);
  return found;
}

}  // namespace troupe
