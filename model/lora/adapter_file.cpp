#include "model/lora/adapter_file.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <system_error>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/linear_layers.hpp"
#include "model/formats/safetensors.hpp"
#include "model/formats/weight_names.hpp"
#include "model/lora/adapter_config.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_config_bytes = 16 << 20;

/// The two tensors of one adapted module, under PEFT's name of the module.
struct tensor_pair {
  const tensor_view* a = nullptr;
  const tensor_view* b = nullptr;
};

/// Our modules that a PEFT module stands for: one, or GPT-2's three in c_attn.
struct adapted_modules {
  std::int64_t layer = 0;
  std::vector<std::string_view> modules;
};

bool take_front(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

bool take_back(std::string_view& text, std::string_view back) {
  if (!text.ends_with(back)) return false;
  text.remove_suffix(back.size());
  return true;
}

/// The number before the next dot.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != '.' || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

/// None where a layer of the base has no linear layer of that name.
std::vector<std::string_view> modules_called(std::string_view name, const model_config& base) {
  std::vector<std::string_view> modules = linear_modules(base);
  std::erase_if(modules, [&](std::string_view ours) { return detail::hugging_face_name(base, ours) != name; });
  return modules;
}

/// Empty modules where the base has no such linear layer.
adapted_modules find_modules(std::string_view module, const model_config& base) {
  const bool gpt2 = base.family == "gpt2";
  if (gpt2) take_front(module, "transformer.");
  if (!take_front(module, gpt2 ? "h." : "model.layers.")) return {};
  const auto layer = take_number(module);
  if (!layer || *layer >= base.layers) return {};
  return {*layer, modules_called(module, base)};
}

void refuse_kind(const std::string& name, const std::string& where) {
  if (name.find(".base_layer.") != std::string::npos)
    refuse("{}: tensor \"{}\": the head and the embeddings cannot be adapted: leave them out of target_modules", where,
           name);
  for (const std::string_view kind :
       {"lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector", "modules_to_save"})
    if (name.find(kind) != std::string::npos)
      refuse("{}: tensor \"{}\" ({}) is not supported: only linear layers can be adapted", where, name, kind);
  if (!name.starts_with(adapter_key_prefix) && name.find(".lora_") != std::string::npos)
    refuse("{}: tensor \"{}\" lacks PEFT's prefix {}: save the adapter with PEFT's save_pretrained", where, name,
           adapter_key_prefix);
  refuse("{}: tensor \"{}\" is no lora_A.weight or lora_B.weight of a module", where, name);
}

std::map<std::string, tensor_pair> pair_up(const tensor_set& set, const std::string& where) {
  std::map<std::string, tensor_pair> pairs;
  for (const auto& [name, tensor] : set.tensors) {
    std::string_view module = name;
    bool known = take_front(module, adapter_key_prefix) && take_back(module, ".weight");
    take_back(module, ".default");
    const bool is_a = take_back(module, ".lora_A");
    known = known && (is_a || take_back(module, ".lora_B"));
    if (!known) refuse_kind(name.substr(0, 300), where);
    auto& pair = pairs[std::string(module)];
    auto& place = is_a ? pair.a : pair.b;
    if (place) refuse("{}: has two tensors like \"{}\"", where, name);
    place = &tensor;
  }
  return pairs;
}

std::vector<float> read_matrix(const tensor_view& tensor, std::int64_t rows, std::int64_t columns,
                               const std::string& name) {
  const std::array<std::int64_t, 2> wanted = {rows, columns};
  if (!std::equal(wanted.begin(), wanted.end(), tensor.shape.begin(), tensor.shape.end()))
    refuse("{}: should have the shape {}, but has {}", name, text_of(wanted), text_of(tensor.shape));
  if (tensor.type != dtype::f32 && tensor.type != dtype::f16 && tensor.type != dtype::bf16)
    refuse("{}: has the type {}, but F32, F16 and BF16 are supported", name, name_of(tensor.type));
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  to_floats(tensor.type, tensor.data.data(), tensor.elements(), values.data());
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    refuse("{}: holds a value that is not finite", name);
  return values;
}

/// Splits the rows of B among the modules; all share A.
std::vector<adapter_part> make_parts(const adapted_modules& ours, const std::string& module, const tensor_pair& pair,
                                     const detail::adapter_config& config, const model_config& base,
                                     const std::string& where) {
  const auto rank = config.rank_of(module);
  const auto [outs, ins] = linear_shape(base, ours.modules.front());
  const auto count = static_cast<std::int64_t>(ours.modules.size());
  const auto a = read_matrix(*pair.a, rank, ins, fmt::format("{}: tensor \"{}.lora_A\"", where, module));
  const auto b = read_matrix(*pair.b, outs * count, rank, fmt::format("{}: tensor \"{}.lora_B\"", where, module));
  const auto scale = config.scale_of(module);
  if (!std::isfinite(scale)) refuse("{}: the scale of \"{}\" is not finite", config.where, module);
  std::vector<adapter_part> parts;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto first = b.begin() + i * outs * rank;
    parts.push_back({.module = fmt::format("model.layers.{}.{}", ours.layer, ours.modules[static_cast<std::size_t>(i)]),
                     .rank = rank,
                     .scale = scale,
                     .a = a,
                     .b = std::vector<float>(first, first + outs * rank),
                     .layer = ours.layer});
  }
  return parts;
}

/// In the order in which a pass meets the layers.
void sort_parts(std::vector<std::pair<adapted_modules, std::vector<adapter_part>>>& all, const model_config& base) {
  const auto known = linear_modules(base);
  const auto place = [&](const adapted_modules& ours) {
    return std::pair(ours.layer, std::find(known.begin(), known.end(), ours.modules.front()) - known.begin());
  };
  std::sort(all.begin(), all.end(), [&](const auto& x, const auto& y) { return place(x.first) < place(y.first); });
}

tensor_set open_tensors(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto path = folder / adapter_weights_name;
  if (!std::filesystem::exists(path, ignored) && std::filesystem::exists(folder / "adapter_model.bin", ignored))
    refuse("{}: has pickled weights only (adapter_model.bin): save the adapter again as safetensors", folder.string());
  return open_safetensors(path);
}

}  // namespace

adapter_file read_adapter(const std::filesystem::path& folder, const model_config& base) {
  const auto config_path = folder / adapter_config_name;
  const auto config =
      detail::parse_adapter_config(detail::read_text(config_path, most_config_bytes), config_path.string());
  const auto set = open_tensors(folder);
  const auto& where = set.files.front().name();
  if (!set.unread.empty())
    refuse("{}: tensor \"{}\" has the type {}, but F32, F16 and BF16 are supported", where, set.unread.begin()->first,
           set.unread.begin()->second);
  std::vector<std::pair<adapted_modules, std::vector<adapter_part>>> all;
  for (const auto& [module, pair] : pair_up(set, where)) {
    const auto name = module.substr(0, 300);
    if (!pair.a || !pair.b) refuse("{}: \"{}\" has only one of lora_A and lora_B", where, name);
    const auto ours = find_modules(module, base);
    if (ours.modules.empty()) refuse("{}: adapts \"{}\", which is no linear layer of the base model", where, name);
    if (const auto setting = config.left_out_by(module, ours.layer); !setting.empty())
      refuse(
          "{}: adapts \"{}\", which \"{}\" of {} leaves out, as PEFT does: remove the tensors, or change that setting",
          where, name, setting, config.where);
    all.emplace_back(ours, make_parts(ours, module, pair, config, base, where));
  }
  if (all.empty()) refuse("{}: holds no adapted layer", where);
  sort_parts(all, base);
  adapter_file file;
  for (auto& [ours, parts] : all) std::move(parts.begin(), parts.end(), std::back_inserter(file.parts));
  return file;
}

}  // namespace troupe
