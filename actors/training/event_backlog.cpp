#include "actors/training/event_backlog.hpp"

#include <algorithm>
#include <utility>

#include "cluster/journal/job.hpp"

namespace troupe {

void event_backlog::note(std::string kind, std::string text) {
  constexpr std::size_t most_waiting = 300;
  if (waiting_.size() >= most_waiting) {
    const auto point = std::find_if(waiting_.begin(), waiting_.end(),
                                    [](const noted_event& each) { return each.kind == metrics_event; });
    waiting_.erase(point == waiting_.end() ? waiting_.begin() : point);
  }
  waiting_.push_back({std::move(kind), std::move(text)});
}

std::vector<noted_event> event_backlog::begin_writing() {
  if (is_writing_ || waiting_.empty()) return {};
  is_writing_ = true;
  return std::exchange(waiting_, {});
}

std::vector<noted_event> event_backlog::take_with(std::string message) {
  std::vector<noted_event> events = std::exchange(waiting_, {});
  events.push_back({message_event, std::move(message)});
  return events;
}

}  // namespace troupe
