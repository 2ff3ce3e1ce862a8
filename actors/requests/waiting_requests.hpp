#pragma once
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/interfaces.hpp"

namespace troupe {

/// Requests that wait for an adapter to be found, by its name and in the order in which they came.
class waiting_requests {
 public:
  struct waiting {
    begin_request request;
    instant since, until;
  };

  /// Whether it is the first that waits for its adapter.
  bool add(begin_request request, instant since, instant until);
  /// Those that wait for this adapter.
  std::deque<waiting> take(const std::string& adapter);
  /// Those that have waited as long as they may, where those of an adapter all may wait equally long.
  std::vector<begin_request> take_overdue(instant now);
  std::vector<begin_request> take_all();
  /// Returns how many there were of it.
  std::size_t remove(request_id id);
  std::size_t size() const;

 private:
  void forget_empty();

  std::unordered_map<std::string, std::deque<waiting>> by_adapter_;  ///< no queue is empty
};

}  // namespace troupe
