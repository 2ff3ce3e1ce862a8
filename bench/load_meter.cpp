#include "bench/load_meter.hpp"

#include <algorithm>

#include "bench/percentiles.hpp"

namespace troupe::bench {

void load_meter::begin(sequence_id id, double came, std::int64_t prompt, std::int64_t wanted, std::int64_t padding) {
  watched_[id] = {came, came, prompt + padding, wanted, 0, steps_};
  ++all_.requests;
  all_.prompt_tokens += prompt;
}

void load_meter::token(sequence_id id, double time) {
  watched& request = watched_.at(id);
  step_tokens_ += 1;
  step_kv_bytes_ += work_.kv_bytes(static_cast<double>(request.positions++));
  if (++request.got > request.wanted) return;
  ++all_.answer_tokens;
  if (request.got == 1) {
    all_.first_token.push_back(time - request.came);
    all_.longest_wait = std::max(all_.longest_wait, steps_ - request.came_at_step);
  } else {
    all_.gaps.push_back(time - request.last);
  }
  request.last = time;
  if (request.got == request.wanted) all_.latency.push_back(time - request.came);
}

void load_meter::after_step(const batch_scheduler& scheduler) {
  ++steps_;
  const std::uint64_t computed = scheduler.stats().computed_tokens;
  all_.least_seconds +=
      least_seconds(work_, limits_, static_cast<double>(computed - computed_), step_tokens_, step_kv_bytes_);
  computed_ = computed;
  step_tokens_ = step_kv_bytes_ = 0;
  all_.peak_blocks = std::max(all_.peak_blocks, scheduler.pool().held());
}

load_figures load_meter::finish(double seconds, const batch_scheduler& scheduler) {
  all_.seconds = seconds;
  all_.blocks = scheduler.pool().total();
  all_.stats = scheduler.stats();
  return std::move(all_);
}

row row_of(std::string name, const load_figures& figures) {
  const auto milliseconds = [](const std::vector<double>& values, double share) {
    return percentile(values, share) * 1e3;
  };
  return {std::move(name),
          {{"tokens/s", static_cast<double>(figures.answer_tokens) / figures.seconds},
           {"with prompts", static_cast<double>(figures.answer_tokens + figures.prompt_tokens) / figures.seconds},
           {"of bound", figures.least_seconds / figures.seconds},
           {"s in all", figures.seconds},
           {"ms TTFT p50", milliseconds(figures.first_token, 0.5)},
           {"TTFT p99", milliseconds(figures.first_token, 0.99)},
           {"ms a token p50", milliseconds(figures.gaps, 0.5)},
           {"a token p99", milliseconds(figures.gaps, 0.99)},
           {"ms request p50", milliseconds(figures.latency, 0.5)},
           {"request p99", milliseconds(figures.latency, 0.99)},
           {"blocks peak", figures.peak_blocks},
           {"blocks", figures.blocks},
           {"computed", static_cast<double>(figures.stats.computed_tokens)},
           {"prefix hits", static_cast<double>(figures.stats.reused_tokens)},
           {"preemptions", static_cast<double>(figures.stats.preemptions)},
           {"steps", static_cast<double>(figures.stats.steps)}}};
}

}  // namespace troupe::bench
