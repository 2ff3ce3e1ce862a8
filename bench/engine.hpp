#pragma once
#include <memory>

#include "bench/report.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

struct engine_options {
  int prompt = 512;          ///< tokens of the prefill
  int decode = 64;           ///< tokens generated after it, one at a time
  int decode_context = 128;  ///< tokens before them
};

/// `troupe bench engine`: prefill and one-sequence decode, each beside what the machine allows in the same run. The
/// bound of decode is reading every weight once for a token; that of prefill the integer (or float) products of its
/// rows.
void run_engine(const std::shared_ptr<const loaded_model>& model, const engine_options& options, const compute& with,
                const report& out);

}  // namespace troupe::bench
