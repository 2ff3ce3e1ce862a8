#include "model/formats/hf/hf_quantization.hpp"

#include <algorithm>
#include <initializer_list>

#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace troupe::detail {
namespace {

using fields = json_fields<nlohmann::json>;

[[noreturn]] void refuse_method(const fields& config, std::string_view method) {
  refuse(
      "{}: the weights are quantized as \"{}\", which is not supported: give a model in GPTQ, AWQ, FP8, "
      "compressed-tensors or gpt-oss's MXFP4, or the original, and quantize it with troupe quantize",
      config.where(), method.substr(0, 80));
}

/// Refuses another than one of these, or of their first where the file has none.
std::string one_of(const fields& config, std::string_view key, std::initializer_list<std::string_view> known) {
  std::string given = config.text(key).value_or(std::string(*known.begin()));
  if (std::find(known.begin(), known.end(), given) == known.end())
    refuse("{}: \"{}\" is \"{}\", which is not supported", config.where(), key, given.substr(0, 80));
  return given;
}

/// Outputs and inputs that share a scale.
void read_block(const fields& config, std::string_view key, code_settings& into) {
  const auto sizes = config.integers(key);
  if (sizes.empty()) return;
  if (sizes.size() != 2 || sizes[0] <= 0 || sizes[1] <= 0)
    refuse("{}: \"{}\" should be two positive integers", config.where(), key);
  into.block_outs = sizes[0], into.block_ins = sizes[1];
}

code_settings read_gptq(const fields& config) {
  const bool is_newer = one_of(config, "checkpoint_format", {"gptq", "gptq_v2"}) == "gptq_v2";
  if (const auto bits = config.integer("bits"); bits && bits != 4 && bits != 8)
    refuse("{}: weights of {} bits are not supported: 4 and 8 are", config.where(), *bits);
  return {.format = is_newer ? code_format::gptq_v2 : code_format::gptq,
          .is_symmetric = config.boolean("sym").value_or(false)};
}

code_settings read_awq(const fields& config) {
  one_of(config, "version", {"gemm", "GEMM"});
  return {.format = code_format::awq};
}

/// Inputs that are turned before they are multiplied would need the turns here.
void refuse_turned_inputs(const fields& config) {
  const auto* turns = config.find("transform_config");
  if (turns && !turns->empty()) refuse("{}: \"transform_config\" is not supported", config.where());
}

code_settings read_compressed(const fields& config) {
  one_of(config, "format", {"pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "dense"});
  refuse_turned_inputs(config);
  code_settings settings{.format = code_format::compressed};
  const auto* groups = config.find("config_groups");
  if (!groups || !groups->is_object()) return settings;
  for (const auto& [name, group] : groups->items()) {
    const fields each(group, config.where() + ": " + name.substr(0, 80));
    const auto* weights = each.find("weights");
    if (!weights) continue;
    read_block(fields(*weights, each.where() + ": weights"), "block_structure", settings);
  }
  return settings;
}

code_settings read_fp8(const fields& config) {
  one_of(config, "fmt", {"e4m3", "float8_e4m3fn"});
  code_settings settings{.format = code_format::fp8};
  read_block(config, "weight_block_size", settings);
  return settings;
}

}  // namespace

code_settings read_quantization(const fields& whole) {
  const auto* object = whole.find("quantization_config");
  if (!object) object = whole.find("compression_config");
  if (!object) return {};
  const fields config(*object, whole.where() + ": quantization_config");
  const std::string method = config.text("quant_method").value_or("unknown");
  if (method == "gptq") return read_gptq(config);
  if (method == "awq") return read_awq(config);
  if (method == "compressed-tensors") return read_compressed(config);
  if (method == "fp8" || method == "fbgemm_fp8") return read_fp8(config);
  if (method == "mxfp4") return {.format = code_format::mxfp4};
  refuse_method(whole, method);
}

}  // namespace troupe::detail
