#include "model/lora/adapter_file.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "model/formats/gguf/gguf.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/lora/adapter_gguf.hpp"
#include "model/lora/adapter_reading.hpp"
#include "model/lora/factor_order.hpp"
#include "model/lora/peft_names.hpp"

namespace troupe {
namespace {

using detail::adapted_linears;
using detail::take_back;
using detail::take_front;

/// The two tensors of one adapted module, under PEFT's name of the module.
struct tensor_pair {
  const tensor_view* a = nullptr;
  const tensor_view* b = nullptr;
};

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
  std::vector<float> values(to_size(tensor.elements()));
  to_floats(tensor.type, tensor.data.data(), tensor.elements(), values.data());
  detail::check_finite(values, name);
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
  const auto read = [&](const tensor_view& tensor, std::int64_t rows, std::int64_t columns, std::string_view side) {
    return read_matrix(tensor, rows, columns, fmt::format("{}: tensor \"{}.lora_{}\"", where, module, side));
  };
  const factor_order order(base, ours.kinds.front());
  const auto a = order.our_a(read(*pair.a, rank, ins, "A"), rank),
             b = order.our_b(read(*pair.b, outs, rank, "B"), rank);
  const auto scale = factors.scale_of(module);
  std::vector<adapter_part> parts;
  auto rows = b.begin();
  for (const linear_kind kind : ours.kinds) {
    const auto end = rows + linear_shape(base, ours.layer, kind).first * rank;
    parts.push_back(
        {.layer = ours.layer, .kind = kind, .rank = rank, .scale = scale, .a = a, .b = std::vector<float>(rows, end)});
    rows = end;
  }
  return parts;
}

/// Names that differ in their prefix alone mean one layer.
void refuse_twice(const std::vector<adapter_part>& sorted, const std::string& where) {
  const auto same = [](const adapter_part& x, const adapter_part& y) { return x.layer == y.layer && x.kind == y.kind; };
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), same);
  if (twice != sorted.end())
    refuse("{}: adapts {} twice, under two names: remove the tensors of one", where,
           linear_name(twice->layer, twice->kind));
}

adapter_file read_peft_adapter(const std::filesystem::path& folder, const model_config& base) {
  check_adapter_folder(folder);
  const auto config_path = folder / adapter_config_name;
  const auto config =
      detail::parse_adapter_config(detail::read_text(config_path, most_adapter_config_bytes), config_path.string());
  const auto set = open_safetensors(folder / adapter_weights_name);
  const auto& where = set.files.front().name();
  if (!set.unread.empty())
    refuse("{}: tensor \"{}\" has the type {}, but F32, F16 and BF16 are supported", where, set.unread.begin()->first,
           set.unread.begin()->second);
  adapter_file file{.parts = {}, .factors = config.factors};
  const module_factors factors(file.factors, config.where);
  for (const auto& [module, pair] : pair_up(set, where)) {
    const auto name = module.substr(0, 300);
    if (!pair.a || !pair.b) refuse("{}: \"{}\" has only one of lora_A and lora_B", where, name);
    const auto ours = detail::find_linears(module, base);
    if (ours.kinds.empty() && base.is_latent() && module.ends_with(".kv_b_proj"))
      refuse(
          "{}: adapts \"{}\", which is computed head by head and cannot be adapted: train on q_proj (or q_a_proj and "
          "q_b_proj), kv_a_proj_with_mqa and o_proj",
          where, name);
    if (ours.kinds.empty()) refuse("{}: adapts \"{}\", which is no linear layer of the base model", where, name);
    if (const auto setting = config.left_out_by(module, ours.layer); !setting.empty())
      refuse(
          "{}: adapts \"{}\", which \"{}\" of {} leaves out, as PEFT does: remove the tensors, or change that setting",
          where, name, setting, config.where);
    auto parts = make_parts(ours, module, pair, factors, base, where);
    std::move(parts.begin(), parts.end(), std::back_inserter(file.parts));
  }
  detail::sort_parts(file.parts);
  refuse_twice(file.parts, where);
  return file;
}

}  // namespace

void check_adapter_folder(const std::filesystem::path& folder) {
  if (!path_exists(folder))
    refuse("{}: there is none: name a folder as PEFT writes it, or a .gguf file", folder.string());
  if (!path_exists(folder / adapter_weights_name) && path_exists(folder / "adapter_model.bin"))
    refuse("{}: has pickled weights only (adapter_model.bin): save the adapter again as safetensors", folder.string());
  for (const std::string_view name : {adapter_config_name, adapter_weights_name}) {
    if (path_exists(folder / name)) continue;
    for (const auto& entry : entries_of(folder))
      if (is_gguf_file(entry) && is_named_as_weights(entry))
        refuse("{}: has no {}: name {}, if you mean that", folder.string(), name, entry.string());
    refuse("{}: has no {}: an adapter as PEFT writes it is a folder with {} and {}", folder.string(), name,
           adapter_config_name, adapter_weights_name);
  }
}

adapter_file read_adapter(const std::filesystem::path& path, const model_config& base) {
  const bool is_gguf = is_gguf_file(path);
  if (std::error_code ignored; !is_gguf && std::filesystem::is_regular_file(path, ignored))
    refuse("{}: is a file: name the folder that PEFT wrote, with {} and {}, or a .gguf file", path.string(),
           adapter_config_name, adapter_weights_name);
  adapter_file file =
      is_gguf ? detail::adapter_from_gguf(detail::open_gguf_adapter(path), base) : read_peft_adapter(path, base);
  if (file.parts.empty()) refuse("{}: holds no adapted layer", (is_gguf ? path : path / adapter_weights_name).string());
  return file;
}

}  // namespace troupe
