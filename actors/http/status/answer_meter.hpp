#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "actors/http/api_context.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

/// Counts the answers to one order in the figures of its model. Both references outlive it.
class answer_meter {
 public:
  /// `came`: when the request was there. A long one may wait before its order is read.
  answer_meter(api_context& context, const answer_order& order, instant came);

  /// The order goes to the gateway now: how long its answers wait from then on comes with them.
  void hand_over() { waited_ = clock_.now() - came_; }
  /// `index`: the choice that the part belongs to.
  void count(std::size_t index, const answer_part& part);

 private:
  struct choice_times {
    instant first, last;  ///< when the first and the last token came
    std::size_t tokens = 0;
    bool is_over = false;
    std::optional<answer_timing> timing;
  };
  void begin();
  void count_end(const choice_times& times, const answer_end& end, bool is_prompts_first);
  void count_longest(std::size_t prompt);

  api_context& context_;
  const answer_order& order_;
  monotonic_clock clock_;
  instant came_;
  duration waited_{};                ///< before the gateway had the order
  std::vector<choice_times> times_;  ///< of each choice
  std::shared_ptr<request_series> series_;
};

}  // namespace troupe
