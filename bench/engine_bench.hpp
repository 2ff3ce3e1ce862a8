#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/device_id.hpp"
#include "model/ops/kernels.hpp"

namespace troupe::bench {

/// Requests as they were recorded.
struct trace_load {
  std::string file;
  double rate = 0;             ///< of the trace's time; 0: all requests come at once
  std::int64_t context = 0;    ///< that the trace's lengths are scaled to; 0: 512, or the model's
  std::int64_t kv_tokens = 0;  ///< memory for keys and values; 0: as much as the worst static batch takes
};

/// More adapters than there is room for.
struct adapters_load {
  int on_disk = 0;
  int in_memory = 32;
  int rank = 8;
  double skew = 1;                      ///< the n-th adapter is asked for in proportion to n^-skew
  std::function<void()> check = [] {};  ///< called again and again: throws to end the load
};

/// What `troupe bench engine` is asked for.
struct engine_bench {
  device_id device = {};
  kv_kind kv = kv_kind::f16;
  int prompt = 0;             ///< tokens of the prefill; 0: 512, or as many as the model can read
  int decode = 64;            ///< tokens generated after it, one at a time
  int decode_context = 128;   ///< tokens before them
  std::vector<int> batches;   ///< sequences of each batch; empty: the usual ones, with and without adapters
  std::vector<int> adapters;  ///< numbers of adapters that each of these batches is run with in turns, beside none

  // One of these loads, if it is asked for, is run alone.
  trace_load trace;             ///< if it has a file
  adapters_load many_adapters;  ///< if some are on disk
  bool constrained = false;     ///< answers under a JSON schema

  int requests = 200;  ///< of the trace, from its beginning, or for the adapters
  int sequences = 32;  ///< that run at a time in these two loads, and the size of a static batch
};

}  // namespace troupe::bench
