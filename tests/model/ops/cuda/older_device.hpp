// Kernels of GPUs before Hopper, on a simulated device that says it is one; a real one is what it is.
#pragma once
#if __has_include(<cuda_host/fibers.hpp>)
#include <utility>

#include <cuda_runtime.h>

namespace troupe::cuda {

class older_device {
 public:
  older_device() = default;
  older_device(const older_device&) = delete;
  older_device& operator=(const older_device&) = delete;
  ~older_device() { cuda_host::compute_capability = own_; }

 private:
  int own_ = std::exchange(cuda_host::compute_capability, 8);
};

}  // namespace troupe::cuda
#else
namespace troupe::cuda {
struct [[maybe_unused]] older_device {};
}  // namespace troupe::cuda
#endif
