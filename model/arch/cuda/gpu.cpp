// Of a build with CUDA.
#include "model/arch/gpu.hpp"

#include <fmt/format.h>

#include "model/arch/cuda/cuda_decoder.hpp"
#include "model/ops/cuda/limits.hpp"

namespace troupe {
namespace {

/// All kernels are compiled for the same GPUs.
std::string code_fault(int gpu, int major) {
  cuda::use_device(gpu);
  if (cuda::has_code()) return {};
  int minor = 0;
  cuda::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, gpu), "asking what a GPU can do");
  const char* const own = major == 9 ? "a" : "";  // instructions that no later GPU has
  return fmt::format(
      "this build has no code for this GPU (compute capability {0}.{1}): build with CUDAARCHS={0}{1}{2}-real, or "
      "without CUDAARCHS, in a fresh build folder, or use the device cpu",
      major, minor, own);
}

}  // namespace

std::string gpu_fault(int gpu) {
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess)
    return fmt::format("no GPU can be used here, CUDA says \"{}\": use the device cpu", cudaGetErrorString(error));
  if (gpu >= count)
    return fmt::format("this machine's GPUs are {}, counted from cuda:0: use the device cpu, or one of them", count);
  constexpr int least_capability = 8;  // of the instructions that kernels use
  int capability = 0;
  cuda::check(cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, gpu), "asking what a GPU can do");
  if (capability >= least_capability) return code_fault(gpu, capability);
  return fmt::format("this GPU has compute capability {}.x, and {}.0 is the least that is needed: use the device cpu",
                     capability, least_capability);
}

std::string gpu_support() {
  const int count = cuda::device_count();
  return fmt::format("{}.{}, {} device{} to use", CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10, count,
                     count == 1 ? "" : "s");
}

std::int64_t free_gpu_memory(int gpu) {
  cuda::use_device(gpu);
  std::size_t free = 0, total = 0;
  cuda::check(cudaMemGetInfo(&free, &total), "asking for free memory");
  return static_cast<std::int64_t>(free);
}

void leave_gpu(int gpu) {
  cuda::use_device(gpu);
  cuda::check(cudaDeviceReset(), "leaving the device");
}

gpu_limits measure_gpu(int gpu) {
  cuda::use_device(gpu);
  const cuda::stream on;
  return {cuda::copy_rate(on), cuda::int8_rate(on), cuda::bf16_rate(on)};
}

double measure_gpu_product(int gpu, const gpu_product& product) {
  cuda::use_device(gpu);
  return cuda::product_seconds(cuda::stream(), product.kind, product.outs, product.ins, product.rows);
}

std::unique_ptr<decoder> make_cuda_decoder(std::shared_ptr<const loaded_model> model, const decoder::options& chosen) {
  return std::make_unique<cuda_decoder>(std::move(model), chosen);
}

}  // namespace troupe
