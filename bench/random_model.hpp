#pragma once
#include <filesystem>
#include <string>

namespace troupe {

/// Writes a Llama-shaped Hugging Face folder with random weights and a tokenizer of bytes: something to measure speed
/// with, or to start a cluster. `shape`: tiny, S (134M) or M (1.1B).
void write_random_model(const std::string& shape, const std::filesystem::path& folder);

}  // namespace troupe
