#pragma once
#include <memory>
#include <vector>

#include "bench/engine_bench.hpp"
#include "bench/replay.hpp"
#include "bench/report.hpp"

namespace troupe::bench {

/// Sequences that come all at once, with prompts of one length and answers of one length. Adapters, if any, are dealt
/// out in turn.
class even_batch {
 public:
  static constexpr int adapter_rank = 16;

  even_batch(const load_place& place, const model_bench& options, int sequences, int adapters);

  /// An engine for so many sequences at a time, with adapters 1 to `adapters`. It keeps the prompts of `batches`
  /// batches.
  static std::unique_ptr<engine> make_engine(const load_place& place, const model_bench& options, int sequences,
                                             int adapters, int batches);

  /// Serves them once more. From the second time on the prompts come from the engine's prefix cache.
  void run(engine& serving);

  /// For each run the median time of the steps in which everybody gets one token and nothing else is done; 0 if there
  /// was none.
  const std::vector<double>& step_seconds() const { return step_seconds_; }
  row figures(const machine_limits& limits) const;

 private:
  load_place place_;
  int sequences_, adapters_;
  double positions_;  ///< of a sequence, in the middle of its answer
  std::vector<timed_request> load_;
  load_figures first_run_;
  std::vector<double> step_seconds_;
};

}  // namespace troupe::bench
