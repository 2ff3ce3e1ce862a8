#pragma once
#include <filesystem>
#include <string>

namespace troupe::bench {

/// Writes a Llama- or Mixtral-shaped Hugging Face folder with random weights and a tokenizer of bytes: something to
/// measure speed with, or to start a cluster. `shape`: tiny, S (134M), M (1.1B), MoE (490M in 32 experts a layer), 8B,
/// or 8B-4 with four of its layers.
void write_random_model(const std::string& shape, const std::filesystem::path& folder);

}  // namespace troupe::bench
