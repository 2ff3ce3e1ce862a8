#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "bench/model_work.hpp"
#include "bench/report.hpp"
#include "model/engine/scheduling/batch_scheduler.hpp"

namespace troupe::bench {

/// What a load got, in seconds.
struct load_figures {
  double seconds = 0;
  std::int64_t requests = 0, prompt_tokens = 0, answer_tokens = 0;
  std::vector<double> first_token;  ///< from a request's coming
  std::vector<double> gaps;         ///< between two tokens of an answer
  std::vector<double> latency;      ///< from a request's coming to its last token
  std::uint64_t longest_wait = 0;   ///< steps before a request's first token
  double least_seconds = 0;         ///< the sum of the steps' bounds
  std::int32_t blocks = 0, peak_blocks = 0;
  batch_scheduler::statistics stats;
};
/// A row of the report: answer tokens a second, then the other figures of the load.
row row_of(std::string name, const load_figures& figures);

/// Watches requests on their way through an engine.
class load_meter {
 public:
  load_meter(const model_work& work, const machine_limits& limits) : work_(work), limits_(limits) {}

  /// Tokens of an answer beyond the first `wanted` count as work, but not as tokens that somebody got.
  void begin(sequence_id id, double came, std::int64_t prompt, std::int64_t wanted, std::int64_t padding = 0);
  void token(sequence_id id, double time);
  void after_step(const batch_scheduler& scheduler);
  load_figures finish(double seconds, const batch_scheduler& scheduler);

 private:
  struct watched {
    double came = 0, last = 0;
    std::int64_t positions = 0;  ///< prompt and answer, padding too
    std::int64_t wanted = 0, got = 0;
    std::uint64_t came_at_step = 0;
  };

  const model_work& work_;
  const machine_limits& limits_;
  load_figures all_;
  std::unordered_map<sequence_id, watched> watched_;
  std::uint64_t steps_ = 0, computed_ = 0;
  double step_tokens_ = 0, step_kv_bytes_ = 0;  ///< of the step that is under way
};

}  // namespace troupe::bench
