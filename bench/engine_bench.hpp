// What `troupe bench engine` is asked for: one of these benches.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "base/device_id.hpp"
#include "model/ops/kernels.hpp"

namespace troupe::bench {

/// Prefill and decode of one sequence, then of many.
struct model_bench {
  int prompt = 0;             ///< tokens of the prefill; 0: 512, or as many as the model can read
  int decode = 64;            ///< tokens generated, one at a time
  int decode_context = 128;   ///< tokens before them
  std::vector<int> batches;   ///< sequences of each batch; empty: the usual ones, with and without adapters
  std::vector<int> adapters;  ///< numbers of adapters that each of these batches is run with in turns, beside none
};

/// Requests as they were recorded.
struct trace_bench {
  std::string file;
  double rate = 0;             ///< of the trace's time; 0: all requests come at once
  std::int64_t context = 0;    ///< that the trace's lengths are scaled to; 0: 512, or the model's
  std::int64_t kv_tokens = 0;  ///< memory for keys and values; 0: as much as the worst static batch takes
  int requests = 200;          ///< from the trace's beginning
  int sequences = 32;          ///< that run at a time, and the size of a static batch
};

/// More adapters than there is room for.
struct adapters_bench {
  int on_disk = 0;
  int in_memory = 32;
  int rank = 8;
  double skew = 1;  ///< the n-th adapter is asked for in proportion to n^-skew
  int requests = 200;
  int sequences = 32;                   ///< that run at a time
  int prompt = 128, answer = 64;        ///< tokens of each request
  std::function<void()> check = [] {};  ///< called again and again: throws to end the load
};

/// Answers under a JSON schema.
struct constrained_bench {
  int prompt = 128, answer = 64;  ///< tokens of each request
};

using engine_bench = std::variant<model_bench, trace_bench, adapters_bench, constrained_bench>;

/// What computes, and as what it keeps keys and values.
struct engine_device {
  device_id device = {};
  kv_kind kv = kv_kind::f16;
};

}  // namespace troupe::bench
