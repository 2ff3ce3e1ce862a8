#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "actors/http/api_context.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

/// Counts the answers to one order in the figures of its model. Both arguments outlive it.
class answer_meter {
 public:
  answer_meter(api_context& context, const answer_order& order);

  /// `index`: the choice that the part belongs to.
  void count(std::size_t index, const answer_part& part);

 private:
  struct choice_times {
    instant first, last;  ///< when the first and the last token came
    std::size_t tokens = 0;
    std::optional<answer_timing> timing;
  };
  void begin();
  void count_end(const choice_times& times, const answer_end& end, bool is_prompts_first);

  api_context& context_;
  const answer_order& order_;
  monotonic_clock clock_;
  instant begun_at_;
  std::vector<choice_times> times_;  ///< of each choice
  std::shared_ptr<request_series> series_;
};

}  // namespace troupe
