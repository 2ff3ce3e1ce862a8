// Of a build without CUDA.
#include "model/arch/gpu.hpp"
#include "base/error.hpp"

namespace troupe {

std::string gpu_fault(int) {
  return "this build has no CUDA: use the device cpu, or build it with scripts/build --cuda";
}

std::string gpu_support() {
  return "not in this build";
}

std::int64_t free_gpu_memory(int) {
  return 0;
}

void leave_gpu(int) {}

gpu_limits measure_gpu(int) {
  return {};
}

double measure_gpu_product(int, const gpu_product&) {
  return 0;
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): the one with a GPU keeps it
std::unique_ptr<decoder> make_cuda_decoder(std::shared_ptr<const loaded_model>, const decoder::options& chosen) {
  refuse("{}: {}", name_of(chosen.device), gpu_fault(chosen.device.gpu));
}

}  // namespace troupe
