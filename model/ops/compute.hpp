#pragma once
#include "base/thread_pool.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {

/// Who computes: the threads, and the instruction set's kernels. Passed to every operation, owned by the caller.
struct compute {
  thread_pool& pool;
  const kernel_table& kernels;
};

}  // namespace troupe
