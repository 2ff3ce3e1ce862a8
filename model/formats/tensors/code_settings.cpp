#include "model/formats/tensors/code_settings.hpp"

#include <array>

#include "base/to_size.hpp"

namespace troupe {

std::string_view name_of(code_format format) {
  constexpr std::array<std::string_view, 7> names{"none", "gptq", "gptq_v2", "awq", "compressed-tensors",
                                                  "fp8",  "mxfp4"};
  return names[to_size(format)];
}

}  // namespace troupe
