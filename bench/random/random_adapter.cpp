#include "bench/random/random_adapter.hpp"

#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/half.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "bench/noise.hpp"
#include "model/formats/linear_layers.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/formats/weight_names.hpp"

namespace troupe::bench {
namespace {

constexpr float largest_factor = 0x1p-7f;

std::vector<float> next_floats(noise& from, std::int64_t count) {
  std::vector<float> values(to_size(count));
  for (auto& value : values) value = from.next();
  return values;
}

/// Calls take(layer, kind, outs, ins) for every linear layer.
template <class Take>
void for_each_linear(const model_config& config, Take take) {
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(config, layer)) {
      const auto [outs, ins] = linear_shape(config, layer, kind);
      take(layer, kind, outs, ins);
    }
}

std::string config_text(std::int64_t rank) {
  return fmt::format(R"({{"peft_type":"LORA","r":{},"lora_alpha":{},"bias":"none"}})", rank, 2 * rank) + "\n";
}

}  // namespace

std::shared_ptr<const lora_adapter> random_adapter(const loaded_model& model, std::int64_t rank, std::uint32_t seed) {
  adapter_file file;
  noise from(seed, largest_factor);
  for_each_linear(model.config, [&](std::int64_t layer, linear_kind kind, std::int64_t outs, std::int64_t ins) {
    auto a = next_floats(from, rank * ins);
    auto b = next_floats(from, outs * rank);
    file.parts.push_back(
        {.layer = layer, .kind = kind, .rank = rank, .scale = 2.0f, .a = std::move(a), .b = std::move(b)});
  });
  return std::make_shared<lora_adapter>(file, model.config.layers, precision_beside(model.quantization));
}

void write_random_adapter(const std::filesystem::path& folder, const model_config& config, std::int64_t rank,
                          std::uint32_t seed) {
  if (detail::hugging_face_name(config, 0, linear_kind::q) != name_of(linear_kind::q))
    refuse("adapters on disk: not measured with {}, whose files have q, k and v as one layer", config.family);
  std::vector<tensor_description> tensors;
  std::vector<std::vector<std::uint16_t>> values;
  noise from(seed, largest_factor);
  const auto add = [&](const std::string& module, const char* part, std::int64_t rows, std::int64_t columns) {
    tensors.push_back({fmt::format("{}{}.{}.weight", adapter_key_prefix, module, part), dtype::bf16, {rows, columns}});
    auto& numbers = values.emplace_back(to_size(rows * columns));
    for (auto& value : numbers) value = f32_to_bf16(from.next());
  };
  for_each_linear(config, [&](std::int64_t layer, linear_kind kind, std::int64_t outs, std::int64_t ins) {
    add(linear_name(layer, kind), "lora_A", rank, ins);
    add(linear_name(layer, kind), "lora_B", outs, rank);
  });
  std::vector<std::span<const std::byte>> data;
  for (const auto& numbers : values) data.push_back(std::as_bytes(std::span(numbers)));
  make_folder(folder);
  write_file(folder / adapter_config_name, config_text(rank));
  write_safetensors(folder / adapter_weights_name, tensors, data, {{"format", "pt"}});
}

}  // namespace troupe::bench
