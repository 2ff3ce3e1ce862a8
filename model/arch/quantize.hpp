#pragma once
#include <cstdint>
#include <filesystem>

#include "base/thread_pool.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

struct quantized_sizes {
  std::int64_t bytes_before = 0;  ///< of the source's weight files
  std::int64_t bytes_after = 0;   ///< of model.safetensors
};

/// Writes `to`, a folder that load_model opens without further packing: the packed weights in `options.quant`, and the
/// source's configuration, tokenizer and chat template beside them (of a GGUF file: metadata.gguf).
/// All is staged inside `to` and renamed at the end, so that a failure leaves nothing behind. `replace` allows a folder
/// that is not empty. Throws input_error for what the caller can mend, runtime_error where the disk fails.
quantized_sizes quantize_model(const std::filesystem::path& from, const std::filesystem::path& to,
                               const load_options& options, bool replace, thread_pool& pool);

/// Bytes of a model's weights when it is quantized to one scheme, no layer kept.
std::int64_t packed_size(const model_config& config, scheme kind);

}  // namespace troupe
