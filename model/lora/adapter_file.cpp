#include "model/lora/adapter_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/number_in.hpp"
#include "base/paths.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/neighbour_heads.hpp"
#include "model/formats/safetensors.hpp"
#include "model/formats/weight_names.hpp"

namespace troupe {
namespace {

/// The two tensors of one adapted module, under PEFT's name of the module.
struct tensor_pair {
  const tensor_view* a = nullptr;
  const tensor_view* b = nullptr;
};

/// Our linear layers that a PEFT module stands for: one, or several that its class has as one.
struct adapted_linears {
  std::int64_t layer = 0;
  std::vector<linear_kind> kinds;
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
  const std::size_t dot = text.find('.');
  if (dot == text.npos) return std::nullopt;
  const auto number = number_in<std::int64_t>(text.substr(0, dot));
  if (number) text.remove_prefix(dot + 1);
  return number;
}

/// None where the layer of the base has no linear layer of that name.
std::vector<linear_kind> kinds_called(std::string_view name, std::int64_t layer, const model_config& base) {
  std::vector<linear_kind> kinds = linear_kinds_of(base, layer);
  std::erase_if(kinds, [&](linear_kind kind) { return detail::hugging_face_name(base, layer, kind) != name; });
  return kinds;
}

/// What stands before a layer's number. A model that sees pictures has its language model within, where older releases
/// of transformers put it, too.
bool take_layers(std::string_view& module, const model_config& base) {
  if (base.family == "gpt2") return take_front(module, "transformer.h.") || take_front(module, "h.");
  if (take_front(module, "model.layers.")) return true;
  return (base.family == "gemma3" || base.sees_pictures) &&
         (take_front(module, "model.language_model.layers.") || take_front(module, "language_model.model.layers."));
}

/// No kinds where the base has no such linear layer.
adapted_linears find_linears(std::string_view module, const model_config& base) {
  if (!take_layers(module, base)) return {};
  const auto layer = take_number(module);
  if (!layer || *layer < 0 || *layer >= base.layers) return {};
  return {*layer, kinds_called(module, *layer, base)};
}

void refuse_kind(const std::string& name, const std::string& where) {
  if (name.find(".base_layer.") != std::string::npos)
    refuse("{}: tensor \"{}\": the head and the embeddings cannot be adapted: leave them out of target_modules", where,
           name);
  for (const std::string_view whole : {"embed_tokens.weight", "wte.weight", "lm_head.weight"})
    if (name.ends_with(whole))
      refuse(
          "{}: tensor \"{}\": the head and the embeddings stay those of the base: save the adapter with "
          "save_embedding_layers=False",
          where, name);
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

/// Splits the rows of B among the linear layers; all share A.
std::vector<adapter_part> make_parts(const adapted_linears& ours, const std::string& module, const tensor_pair& pair,
                                     const module_factors& factors, const model_config& base,
                                     const std::string& where) {
  const auto rank = factors.rank_of(module);
  const auto ins = linear_shape(base, ours.layer, ours.kinds.front()).second;
  std::int64_t outs = 0;
  for (const linear_kind kind : ours.kinds) outs += linear_shape(base, ours.layer, kind).first;
  const auto a = read_matrix(*pair.a, rank, ins, fmt::format("{}: tensor \"{}.lora_A\"", where, module));
  const auto b = read_matrix(*pair.b, outs, rank, fmt::format("{}: tensor \"{}.lora_B\"", where, module));
  const auto scale = factors.scale_of(module);
  std::vector<adapter_part> parts;
  auto rows = b.begin();
  for (const linear_kind kind : ours.kinds) {
    const auto end = rows + linear_shape(base, ours.layer, kind).first * rank;
    parts.push_back({.layer = ours.layer,
                     .kind = kind,
                     .rank = rank,
                     .scale = scale,
                     .a = a,
                     .b = heads_in_class(base, kind).in_our_order(std::vector<float>(rows, end), rank)});
    rows = end;
  }
  return parts;
}

/// In the order in which a pass meets the layers.
void sort_parts(std::vector<adapter_part>& parts) {
  const auto place = [](const adapter_part& part) { return std::pair(part.layer, part.kind); };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const adapter_part& x, const adapter_part& y) { return place(x) < place(y); });
}

/// Names that differ in their prefix alone mean one layer.
void refuse_twice(const std::vector<adapter_part>& sorted, const std::string& where) {
  const auto same = [](const adapter_part& x, const adapter_part& y) { return x.layer == y.layer && x.kind == y.kind; };
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), same);
  if (twice != sorted.end())
    refuse("{}: adapts {} twice, under two names: remove the tensors of one", where,
           linear_name(twice->layer, twice->kind));
}

tensor_set open_tensors(const std::filesystem::path& folder) {
  check_not_pickled(folder);
  return open_safetensors(folder / adapter_weights_name);
}

}  // namespace

void check_not_pickled(const std::filesystem::path& folder) {
  if (!path_exists(folder / adapter_weights_name) && path_exists(folder / "adapter_model.bin"))
    refuse("{}: has pickled weights only (adapter_model.bin): save the adapter again as safetensors", folder.string());
}

adapter_file read_adapter(const std::filesystem::path& folder, const model_config& base) {
  if (std::error_code ignored; std::filesystem::is_regular_file(folder, ignored))
    refuse("{}: is a file: name the folder that PEFT wrote, with {} and {}", folder.string(), adapter_config_name,
           adapter_weights_name);
  const auto config_path = folder / adapter_config_name;
  const auto config =
      detail::parse_adapter_config(detail::read_text(config_path, most_adapter_config_bytes), config_path.string());
  const auto set = open_tensors(folder);
  const auto& where = set.files.front().name();
  if (!set.unread.empty())
    refuse("{}: tensor \"{}\" has the type {}, but F32, F16 and BF16 are supported", where, set.unread.begin()->first,
           set.unread.begin()->second);
  adapter_file file{.parts = {}, .factors = config.factors};
  const module_factors factors(file.factors, config.where);
  for (const auto& [module, pair] : pair_up(set, where)) {
    const auto name = module.substr(0, 300);
    if (!pair.a || !pair.b) refuse("{}: \"{}\" has only one of lora_A and lora_B", where, name);
    const auto ours = find_linears(module, base);
    if (ours.kinds.empty()) refuse("{}: adapts \"{}\", which is no linear layer of the base model", where, name);
    if (const auto setting = config.left_out_by(module, ours.layer); !setting.empty())
      refuse(
          "{}: adapts \"{}\", which \"{}\" of {} leaves out, as PEFT does: remove the tensors, or change that setting",
          where, name, setting, config.where);
    auto parts = make_parts(ours, module, pair, factors, base, where);
    std::move(parts.begin(), parts.end(), std::back_inserter(file.parts));
  }
  if (file.parts.empty()) refuse("{}: holds no adapted layer", where);
  sort_parts(file.parts);
  refuse_twice(file.parts, where);
  return file;
}

}  // namespace troupe
