#pragma once
#include <filesystem>

#include "model/formats/gguf/gguf.hpp"
#include "model/lora/adapter_file.hpp"

namespace troupe::detail {

/// A LoRA adapter as llama.cpp's converter writes it: one GGUF file. Refuses another kind of file by what it says of
/// itself, whatever its tensors are.
gguf_file open_gguf_adapter(const std::filesystem::path& path);

/// llama.cpp multiplies by alpha / rank, whatever PEFT's configuration said: so it is here.
/// What cannot be applied is refused by its tensor: norms, embeddings, head, experts and their router, and all of
/// GPT-2, whose factors the converter turns round.
adapter_file adapter_from_gguf(const gguf_file& file, const model_config& base);

}  // namespace troupe::detail
