// What a load got from a server, in the names that serving benchmarks use.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace troupe::bench {

/// One request as its client saw it; times in seconds from the load's beginning.
struct served_request {
  double sent = 0, first = 0, last = 0;
  std::vector<double> gaps;  ///< between pieces of the answer
  std::int64_t prompt_tokens = 0, answer_tokens = 0;
  std::string error;  ///< empty: answered to the end
};

/// Requests within both count as good.
struct service_goal {
  double ttft_ms = 1000, tpot_ms = 100;
};

struct spread {
  double mean = 0, median = 0, p99 = 0, most = 0;
};

/// One load: its name ("concurrency 16"), and what came of it. Times in milliseconds, rates by the second.
struct serve_figures {
  std::string name;
  double duration = 0;
  std::int64_t completed = 0, failed = 0, input_tokens = 0, output_tokens = 0;
  double request_throughput = 0, output_throughput = 0, total_throughput = 0, goodput = 0;
  spread ttft, tpot, itl, e2el;
  std::string first_error;
};
serve_figures figures_of(std::string name, const std::vector<served_request>& requests, double duration,
                         const service_goal& goal);

std::string to_text(const serve_figures& figures);
std::string to_json(const serve_figures& figures);
/// Output tokens a second across, latency up: the median and 99th percentile between two tokens, a point for each load
/// that has such a time.
std::string latency_plot(const std::vector<serve_figures>& loads);

}  // namespace troupe::bench
