// A safetensors header from anywhere: it is read, or refused with input_error, and nothing else happens.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/tensors/safetensors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::tensor_set set;
  try {
    troupe::parse_safetensors(std::as_bytes(std::span(data, size)), "fuzz", set);
    std::size_t total = 0;
    for (const auto& [name, tensor] : set.tensors) {
      if (tensor.data.size() != troupe::byte_size(tensor.type, tensor.shape, name)) __builtin_trap();
      for (const auto byte : tensor.data) total += troupe::to_size(byte);
    }
    if (total > size * 255) __builtin_trap();
  } catch (const troupe::input_error&) {
  }
  return 0;
}
