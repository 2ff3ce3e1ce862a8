#include "bench/scheduler.hpp"

#include <random>

#include "bench/load.hpp"
#include "bench/percentiles.hpp"
#include "bench/timing.hpp"
#include "model/engine/scheduling/adapter_residency.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe::bench {
namespace {

struct crowd_shape {
  const char* name;
  int waiting = 0;  ///< beside the 64 that run
  int shortest_prompt = 128, longest_prompt = 128, shortest_answer = 1024, longest_answer = 1024;
  std::int32_t blocks = 8192;
  int adapters = 0, adapters_in_memory = 32;
};

constexpr int running = 64;

/// Keeps all places and the queue full: for each request that ends a new one comes.
class crowd {
 public:
  explicit crowd(const crowd_shape& shape)
      : shape_(shape), residency_({.bytes = shape.adapters_in_memory}), scheduler_(options_for(shape)) {
    std::vector<double> weights;
    for (int i = 1; i <= shape.adapters; ++i) {
      (void)residency_.declare(adapter_version(static_cast<std::uint32_t>(i)), 1);
      weights.push_back(1.0 / i);
    }
    popular_ = std::discrete_distribution<std::uint32_t>(weights.begin(), weights.end());
    for (int i = 0; i < running + shape.waiting; ++i) submit();
  }

  /// Seconds of deciding; 0 where nothing could be done.
  double step() {
    load_adapters();
    const double start = now();
    if (!scheduler_.plan_step({}, plan_)) return 0;
    const double planned = now() - start;
    outcomes_.clear();
    for (const planned_share& share : plan_.shares)
      if (share.complete) outcomes_.push_back({share.sequence, token_, false, {}});
    const double before = now();
    const auto ended = scheduler_.commit(plan_.id, outcomes_).size();
    const double seconds = planned + now() - before;
    for (std::size_t i = 0; i < ended; ++i) submit();
    return seconds;
  }
  std::size_t shares() const { return plan_.shares.size(); }
  const batch_scheduler& scheduler() const { return scheduler_; }

 private:
  batch_scheduler::options options_for(const crowd_shape& shape) {
    batch_scheduler::options options;
    options.blocks = shape.blocks;
    options.context = 2048;
    options.max_batch_tokens = 512;
    options.max_sequences = running;
    options.max_waiting = 1 << 20;
    if (shape.adapters > 0) options.is_ready = [this](adapter_version version) { return residency_.is_ready(version); };
    return options;
  }
  int between(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void submit() {
    sequence_request request;
    request.prompt = random_tokens(between(shape_.shortest_prompt, shape_.longest_prompt), 32000, ++submitted_);
    request.max_tokens = between(shape_.shortest_answer, shape_.longest_answer);
    request.tenant = tenant_id(submitted_ % 8);
    if (shape_.adapters > 0) request.adapter = adapter_version(popular_(random_) + 1);
    (void)scheduler_.submit(std::move(request));
  }
  void load_adapters() {
    if (shape_.adapters == 0) return;
    const auto pinned = [&](adapter_version version) { return scheduler_.is_running(version); };
    for (const adapter_version version : residency_.turn(pinned).load) residency_.loaded(version);
  }

  crowd_shape shape_;
  std::mt19937 random_{1};
  std::discrete_distribution<std::uint32_t> popular_;
  adapter_residency residency_;
  batch_scheduler scheduler_;
  step_plan plan_;
  std::vector<sequence_outcome> outcomes_;
  const std::vector<token_id> token_{7};
  std::uint64_t submitted_ = 0;
};

void run_crowd(const crowd_shape& shape, const report& out) {
  crowd all(shape);
  for (int i = 0; i < 200; ++i) all.step();  // until all prompts have been read
  std::vector<double> times;
  double shares = 0;
  constexpr int steps = 5000;
  for (int i = 0; i < steps; ++i) {
    times.push_back(all.step() * 1e6);
    shares += static_cast<double>(all.shares());
  }
  double total = 0;
  for (const double time : times) total += time;
  const auto stats = all.scheduler().stats();
  out.add({shape.name,
           {{"us a step p50", percentile(times, 0.5)},
            {"mean", total / steps},
            {"p99", percentile(times, 0.99)},
            {"shares", shares / steps},
            {"preemptions", static_cast<double>(stats.preemptions)}}});
}

}  // namespace

void run_scheduler(const report& out) {
  out.title("deciding about a step: plan and commit, 64 sequences, no model");
  run_crowd({.name = "all decode"}, out);
  const crowd_shape busy{.name = "coming and going, 1000 wait",
                         .waiting = 1000,
                         .shortest_prompt = 8,
                         .longest_prompt = 1024,
                         .shortest_answer = 8,
                         .longest_answer = 256};
  run_crowd(busy, out);
  crowd_shape few_blocks = busy;
  few_blocks.name = "the same, few blocks";
  few_blocks.blocks = 1024;
  run_crowd(few_blocks, out);
  crowd_shape many_adapters = busy;
  many_adapters.name = "the same, 1000 adapters";
  many_adapters.adapters = 1000;
  run_crowd(many_adapters, out);
}

}  // namespace troupe::bench
