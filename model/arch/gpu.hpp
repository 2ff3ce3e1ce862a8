// All that the rest of the program knows of GPUs. A build without CUDA has these functions too: there they refuse.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "model/arch/decoder.hpp"

namespace troupe {

/// What stands in the way of this GPU, and the remedy; empty: nothing.
std::string gpu_fault(int gpu);
/// What `troupe --version` says of CUDA.
std::string gpu_support();
std::int64_t free_gpu_memory(int gpu);
/// Throws input_error where `chosen` asks for what no GPU does.
std::unique_ptr<decoder> make_cuda_decoder(std::shared_ptr<const loaded_model> model, const decoder::options& chosen);

}  // namespace troupe
