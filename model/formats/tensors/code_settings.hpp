#pragma once
#include <cstdint>
#include <string_view>

namespace troupe {

/// Who wrote the codes, as config.json's quantization_config says. gptq has zero points that are one too small.
enum class code_format : std::uint8_t { none, gptq, gptq_v2, awq, compressed, fp8, mxfp4 };
std::string_view name_of(code_format format);

/// How a model's weight_codes are to be read, as its config.json says.
struct code_settings {
  code_format format = code_format::none;
  bool is_symmetric = false;      ///< GPTQ's zero points are all half of what codes reach
  std::int64_t block_outs = 128;  ///< outputs and inputs that share a scale, of FP8 whose scales are blocks'
  std::int64_t block_ins = 128;
};

}  // namespace troupe
