#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/lessons/lesson.hpp"
#include "bench/replay.hpp"

namespace troupe::bench {

/// PEFT's default.
inline constexpr std::int64_t lesson_adapter_rank = 8;

/// How long a prompt and an answer are.
struct request_lengths {
  std::int64_t prompt = 0, answer = 0;
};

/// An engine with room for some requests, which it answers as often as asked. No two prompts are the same, so that the
/// prefix cache spares nothing.
class lesson_load {
 public:
  /// With adapters each request has the next of them in turn; `sequences` run at a time.
  lesson_load(const lesson_place& place, const std::shared_ptr<const loaded_model>& model,
              std::vector<request_lengths> requests, int sequences, int adapters = 0);

  load_figures at_once() { return replay(engine_, place_, next(), 0); }
  load_figures one_by_one() { return replay(engine_, place_, next(), 1); }
  load_figures in_static_batches(std::size_t size) { return replay_static(engine_, place_, next(), size); }

 private:
  std::vector<timed_request> next();

  std::vector<request_lengths> requests_;
  int adapters_;
  load_place place_;
  engine engine_;
  std::uint64_t seed_ = 0;
};

std::vector<request_lengths> equal_requests(int count, request_lengths each);

/// Of several runs the one with the median time, after one that is not counted.
template <class Run>
load_figures median_run(const lesson_place& place, Run run) {
  place.check();
  (void)run();
  std::vector<load_figures> runs;
  double spent = 0;
  do {
    place.check();
    runs.push_back(run());
    spent += runs.back().seconds;
  } while (spent < place.patience && runs.size() < 100);
  const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const load_figures& a, const load_figures& b) { return a.seconds < b.seconds; });
  return std::move(*middle);
}

/// "llama, 12 layers, 768 wide, 2 threads"
std::string shape_of(const loaded_model& model, const compute& with);
/// The same with ", u8 weights".
std::string setting_of(const loaded_model& model, const compute& with);

}  // namespace troupe::bench
