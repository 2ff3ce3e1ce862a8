// A config.json from anywhere: what is accepted has passed every check of a configuration.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/model_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto config = troupe::parse_hf_config({reinterpret_cast<const char*>(data), size}, "fuzz");
    if (config.heads % config.kv_heads != 0 || config.ffn < 1) __builtin_trap();
  } catch (const troupe::input_error&) {
  }
  return 0;
}
