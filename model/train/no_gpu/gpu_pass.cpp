// Of a build without CUDA.
#include "model/train/passes/gpu_pass.hpp"

#include "base/error.hpp"
#include "model/arch/gpu.hpp"

namespace troupe {

std::unique_ptr<train_pass> make_cuda_train_pass(const trained_model&, const parameter_set&, const compute&,
                                                 // NOLINTNEXTLINE(performance-unnecessary-value-param): as with a GPU
                                                 train_pass::options chosen) {
  refuse("{}: {}", name_of(chosen.device), gpu_fault(chosen.device.gpu));
}

}  // namespace troupe
