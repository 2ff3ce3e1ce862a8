// Tests of what GPUs compute. In a build with CUDA they use the first GPU, otherwise the one that tests/cuda_host
// simulates in plain C++.
#pragma once
#include <gtest/gtest.h>

#include "base/device_id.hpp"
#include "model/arch/gpu.hpp"
#if __has_include(<cuda_host/fibers.hpp>)
#include <cuda_host/fibers.hpp>
#include <cuda_host/memory.hpp>
#endif

namespace troupe {

constexpr device_id first_gpu{0};

inline void skip_without_gpu() {
  if (const std::string fault = gpu_fault(first_gpu.gpu); !fault.empty()) GTEST_SKIP() << fault;
}

/// The order in which a simulated device runs its threads; a real one has its own.
inline void set_thread_order([[maybe_unused]] unsigned order) {
#if __has_include(<cuda_host/fibers.hpp>)
  cuda_host::set_order(order);
#endif
}

}  // namespace troupe
