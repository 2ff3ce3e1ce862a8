// An adapter_config.json from anywhere: read or refused; what was read answers for any module.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "model/lora/adapter_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto config = troupe::detail::parse_adapter_config({reinterpret_cast<const char*>(data), size}, "fuzz");
    const troupe::module_factors factors(config.factors, "fuzz");
    for (const std::string_view module : {"model.layers.0.self_attn.q_proj", "transformer.h.11.attn.c_attn", ""}) {
      if (factors.rank_of(module) < 1) __builtin_trap();
      factors.scale_of(module);
      config.left_out_by(module, 0);
    }
  } catch (const troupe::input_error&) {
  }
  return 0;
}
