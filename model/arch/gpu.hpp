// All that the rest of the program knows of GPUs. A build without CUDA has these functions too: there they refuse.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/arch/decoder.hpp"

namespace troupe {

/// Why GPUs do not run such a model so far; empty: they do.
std::string_view gpus_lack(const loaded_model& model);
/// Why they do not train it so far.
std::string_view gpus_lack_for_training(const model_config& config);
/// What stands in the way of this GPU, and the remedy; empty: nothing.
std::string gpu_fault(int gpu);
/// What `troupe --version` says of CUDA.
std::string gpu_support();
std::int64_t free_gpu_memory(int gpu);
void leave_gpu(int gpu);
/// What a GPU allows, measured: bytes that are read or written a second, products and sums a second.
struct gpu_limits {
  double bytes = 0, int8 = 0, bf16 = 0;
};
gpu_limits measure_gpu(int gpu);
/// Matrices of one scheme that are multiplied together, and the rows.
struct gpu_product {
  scheme kind = scheme::u8;
  std::span<const std::int64_t> outs;
  std::int64_t ins = 0;
  int rows = 0;
};
double measure_gpu_product(int gpu, const gpu_product& product);  ///< seconds
/// Throws input_error where `chosen` asks for what no GPU does.
std::unique_ptr<decoder> make_cuda_decoder(std::shared_ptr<const loaded_model> model, const decoder::options& chosen);

}  // namespace troupe
