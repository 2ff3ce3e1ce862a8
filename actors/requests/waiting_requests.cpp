#include "actors/requests/waiting_requests.hpp"

#include <utility>

namespace troupe {

bool waiting_requests::add(begin_request request, instant since, instant until) {
  const auto [queue, is_first] = by_adapter_.try_emplace(request.adapter);
  queue->second.push_back({std::move(request), since, until});
  return is_first;
}

std::deque<waiting_requests::waiting> waiting_requests::take(const std::string& adapter) {
  auto found = by_adapter_.extract(adapter);
  return found ? std::move(found.mapped()) : std::deque<waiting>();
}

std::vector<begin_request> waiting_requests::take_overdue(instant now) {
  std::vector<begin_request> overdue;
  for (auto& [adapter, queue] : by_adapter_)
    for (; !queue.empty() && queue.front().until <= now; queue.pop_front())
      overdue.push_back(std::move(queue.front().request));
  forget_empty();
  return overdue;
}

std::vector<begin_request> waiting_requests::take_all() {
  return take_overdue(instant{duration::max()});
}

std::size_t waiting_requests::remove(request_id id) {
  std::size_t removed = 0;
  for (auto& [adapter, queue] : by_adapter_)
    removed += std::erase_if(queue, [&](const waiting& each) { return each.request.id == id; });
  forget_empty();
  return removed;
}

void waiting_requests::forget_empty() {
  std::erase_if(by_adapter_, [](const auto& each) { return each.second.empty(); });
}

std::size_t waiting_requests::size() const {
  std::size_t size = 0;
  for (const auto& [adapter, queue] : by_adapter_) size += queue.size();
  return size;
}

}  // namespace troupe
