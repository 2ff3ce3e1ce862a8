// A GGUF file from anywhere: read, as a model and as an adapter, or refused; what was read survives being written
// without its tensors.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/gguf/gguf.hpp"
#include "model/formats/gguf/gguf_config.hpp"
#include "model/formats/model_config.hpp"
#include "model/lora/adapter_gguf.hpp"

namespace {

void read_tensors(const troupe::gguf_file& file) {
  for (const auto& [name, tensor] : file.tensors.tensors) {
    if (tensor.type == troupe::dtype::i8 || tensor.type == troupe::dtype::i32) continue;
    std::vector<float> values(troupe::to_size(tensor.elements()));
    troupe::to_floats(tensor.type, tensor.data.data(), tensor.elements(), values.data());
  }
}

/// The same bytes again, except that a NaN differs from itself.
void write_twice(const troupe::gguf_file& file) {
  const auto bare = troupe::metadata_only_gguf(file);
  troupe::gguf_file again;
  troupe::parse_gguf(std::as_bytes(std::span(bare)), "again", again);
  if (troupe::metadata_only_gguf(again) != bare) __builtin_trap();
}

void read_adapter_of_a_llama(const troupe::gguf_file& file) {
  troupe::model_config base;
  base.family = "llama", base.file.gguf_turns_neighbours = true;
  base.vocab_size = 10, base.hidden = 8, base.layers = 2, base.heads = 4, base.kv_heads = 2;
  base.head_dim = 2, base.ffn = 12, base.context = 64;
  (void)troupe::detail::adapter_from_gguf(file, base);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::gguf_file file;
  try {
    troupe::parse_gguf(std::as_bytes(std::span(data, size)), "fuzz", file);
    read_tensors(file);
    troupe::config_from_gguf(file);
  } catch (const troupe::input_error&) {
  }
  try {
    read_adapter_of_a_llama(file);
  } catch (const troupe::input_error&) {
  }
  try {
    write_twice(file);
  } catch (const troupe::input_error&) {
  }
  return 0;
}
