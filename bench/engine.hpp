#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/device_id.hpp"
#include "bench/report.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

struct engine_bench {
  device_id device = {};
  kv_kind kv = kv_kind::f16;
  int prompt = 0;             ///< tokens of the prefill; 0: 512, or as many as the model can read
  int decode = 64;            ///< tokens generated after it, one at a time
  int decode_context = 128;   ///< tokens before them
  std::vector<int> batches;   ///< sequences of each batch; empty: the usual ones, with and without adapters
  std::vector<int> adapters;  ///< numbers of adapters that each of these batches is run with in turns, beside none

  std::string trace;           ///< a file: that load alone is run
  double rate = 0;             ///< of the trace's time; 0: all requests come at once
  int requests = 200;          ///< of the trace, from its beginning
  std::int64_t context = 0;    ///< that the trace's lengths are scaled to; 0: 512, or the model's
  std::int64_t kv_tokens = 0;  ///< memory for keys and values; 0: as much as the worst static batch takes
  int sequences = 32;          ///< that run at a time, and the size of a static batch

  bool constrained = false;  ///< answers under a JSON schema, and that alone

  int adapters_on_disk = 0;  ///< if not 0, that load alone is run
  int adapters_in_memory = 32;
  int adapter_rank = 8;
  double adapter_skew = 1;              ///< the n-th adapter is asked for in proportion to n^-skew
  std::function<void()> check = [] {};  ///< called again and again while that load runs: throws to end it
};

/// `troupe bench engine`: prefill, decode of one sequence and of many, with and without adapters; or a recorded load;
/// or more adapters than there is room for. Everything beside what the machine allows in the same run: reading every
/// weight once a step and the keys and values of its rows, or the integer (or float) products of its rows, whichever
/// takes longer.
void run_engine(const std::shared_ptr<const loaded_model>& model, const engine_bench& options, const compute& with,
                const report& out);

}  // namespace troupe::bench
