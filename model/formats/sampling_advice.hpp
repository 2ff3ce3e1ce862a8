#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace troupe {

/// How a model's makers advise to draw its tokens, where they do.
struct sampling_advice {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int32_t> top_k;
};

/// From the generation_config.json of a folder, or from GGUF metadata; empty where neither says anything. Throws
/// input_error.
sampling_advice read_sampling_advice(const std::filesystem::path& model);

}  // namespace troupe
