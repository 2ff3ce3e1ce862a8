#include "actors/http/status/answer_meter.hpp"

#include <algorithm>
#include <span>

#include "base/to_size.hpp"

namespace troupe {

answer_meter::answer_meter(api_context& context, const answer_order& order, instant came)
    : context_(context), order_(order), came_(came), times_(order.prompts.size() * to_size(order.n)) {}

/// With the first part: what is refused is not counted, and by then it is known which version of an adapter answers.
void answer_meter::begin() {
  const served_model& served = context_.served;
  const auto adapter = served.find_adapter(order_.adapter);
  series_ = context_.metrics.series(adapter ? adapter->full_name : served.model);
  series_->add(request_figure::wanted_answers, order_.n);
  series_->add(request_figure::wanted_tokens,
               static_cast<double>(std::min(order_.sampling.max_tokens, served.prompts->context())));
}

void answer_meter::count(std::size_t index, const answer_part& part) {
  if (!series_) begin();
  const instant now = clock_.now();
  const std::size_t tokens = part.token_count();
  choice_times& times = times_[index];
  if (times.first == instant{}) {
    times.first = now;
    series_->add(request_figure::first_token, seconds_of(now - came_));
  } else if (tokens > 0) {
    series_->add(request_figure::gap, seconds_of(now - times.last) / static_cast<double>(tokens), tokens);
  }
  times.last = now;
  times.tokens += tokens;
  if (part.timing) times.timing = part.timing;
  if (part.end) {
    times.is_over = true;
    count_end(times, *part.end, index % to_size(order_.n) == 0);
    count_longest(index / to_size(order_.n));
  }
  series_->answered(tokens);
}

void answer_meter::count_end(const choice_times& times, const answer_end& end, bool is_prompts_first) {
  const double decode = seconds_of(times.last - times.first);
  series_->add(request_figure::latency, seconds_of(times.last - came_));
  series_->add(request_figure::decode, decode);
  if (times.timing) {
    series_->add(request_figure::queued, seconds_of(waited_ + times.timing->queued));
    series_->add(request_figure::prefill, seconds_of(times.timing->prefill));
    series_->add(request_figure::inference, seconds_of(times.timing->prefill) + decode);
  }
  if (times.tokens > 1) series_->add(request_figure::per_token, decode / static_cast<double>(times.tokens - 1));
  series_->add(request_figure::prompt_tokens, static_cast<double>(end.prompt_tokens));
  series_->add(request_figure::answer_tokens, static_cast<double>(times.tokens));
  series_->ended(end.finish, is_prompts_first ? static_cast<std::uint64_t>(end.prompt_tokens) : 0);
}

/// Once all answers to the prompt have ended.
void answer_meter::count_longest(std::size_t prompt) {
  const auto answers = std::span(times_).subspan(prompt * to_size(order_.n), to_size(order_.n));
  if (!std::ranges::all_of(answers, &choice_times::is_over)) return;
  const auto longest = std::ranges::max_element(answers, {}, &choice_times::tokens);
  series_->add(request_figure::longest_answer, static_cast<double>(longest->tokens));
}

}  // namespace troupe
