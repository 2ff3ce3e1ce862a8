#include "model/formats/model_files.hpp"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/gguf_name.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "model/formats/gguf/gguf_config.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/formats/unused_tensors.hpp"
#include "model/formats/weight_names.hpp"

namespace troupe {
namespace {

using detail::naming;
using detail::tensor_form;
using detail::wanted_weight;
using detail::weight_place;

/// Of a place that says nothing about it.
bool is_transposed(const tensor_set& set, const wanted_weight& weight, const weight_place& place) {
  if (!place.either_way) return place.rows.transposed;
  const auto* tensor = set.find(place.name);
  return tensor && tensor->shape != place.form.shape(weight, false);
}

/// The weight's own matrix, of a tensor that has one for each expert or head.
tensor_view own_part_of(tensor_view all, const wanted_weight& weight, const weight_place& place) {
  if (place.form.has_unit) all.shape.erase(all.shape.end() - 2);
  if (place.form.members == 0) return all;
  all.shape.erase(all.shape.begin());
  const std::size_t bytes = byte_size(all.type, all.shape, place.name);
  all.data = all.data.subspan(to_size(std::max(weight.expert, weight.head)) * bytes, bytes);
  return all;
}

/// Quantizers of old put what config.json should say into files of their own.
std::string what_is_instead(const tensor_set& set, const weight_place& place) {
  constexpr std::string_view ending = ".weight";
  if (!place.name.ends_with(ending)) return {};
  if (!set.find(place.name.substr(0, place.name.size() - ending.size()) + ".qweight")) return {};
  return ", but its codes are there: put the contents of quantize_config.json (GPTQ) or quant_config.json (AWQ) into "
         "config.json as \"quantization_config\", with a \"quant_method\"";
}

const tensor_view& find_tensor(const tensor_set& set, const weight_place& place, const std::vector<std::int64_t>& shape,
                               const std::string& where) {
  if (const auto unread = set.unread.find(place.name); unread != set.unread.end())
    refuse("{}: tensor \"{}\" has the type {}, which is not supported", where, place.name, unread->second);
  const auto* tensor = set.find(place.name);
  if (!tensor)
    refuse("{}: lacks the tensor \"{}\" {}{}", where, place.name, text_of(shape), what_is_instead(set, place));
  if (tensor->shape != shape)
    refuse("{}: tensor \"{}\" should have the shape {}, but has {}", set.file_of(*tensor), place.name, text_of(shape),
           text_of(tensor->shape));
  return *tensor;
}

void check_type(const tensor_set& set, const tensor_view& tensor, const wanted_weight& weight,
                const weight_place& place) {
  const bool floats = tensor.type == dtype::f32 || tensor.type == dtype::f16 || tensor.type == dtype::bf16;
  const bool blocks = block_of(tensor.type).elements > 1;
  if (!floats && !(blocks && !weight.vector && !place.rows.transposed))
    refuse("{}: tensor \"{}\" has the type {}, which is not supported for it", set.file_of(tensor), place.name,
           name_of(tensor.type));
}

std::optional<weight_codes> codes_of(const tensor_set& set, const wanted_weight& weight, const weight_place& place,
                                     const code_settings& settings) {
  if (weight.vector) return std::nullopt;
  const tensor_form& form = place.form;
  if (settings.format == code_format::mxfp4 && form.members > 0)
    return find_mxfp4(set, place.name,
                      {form.members, form.all_outs, weight.expert, place.rows.first_out, place.rows.step}, weight.outs,
                      weight.ins);
  const bool is_turned = form.all_ins > 0;
  return find_codes(set, place.name, is_turned ? form.all_ins : form.all_outs, is_turned ? weight.outs : weight.ins,
                    settings);
}

/// Of a tensor of codes, which are [out, in] but where others' inputs are in it, too. Those of gpt-oss's experts say
/// themselves which rows are ours.
rows_in_tensor rows_of_codes(const weight_codes& codes, const weight_place& place) {
  rows_in_tensor rows = place.rows;
  rows.transposed = place.form.all_ins > 0;
  if (codes.layout == code_layout::e2m1) rows.first_out = 0, rows.step = 1;
  return rows;
}

weight_source source_of(const tensor_set& set, const wanted_weight& weight, weight_place place,
                        const code_settings& settings, const std::string& where) {
  weight_source source{.origin = place.name, .outs = weight.outs, .ins = weight.ins};
  if (auto codes = codes_of(set, weight, place, settings)) {
    source.tensor = codes->codes;
    source.rows = rows_of_codes(*codes, place);
    source.codes = std::move(codes);
    return source;
  }
  place.rows.transposed = is_transposed(set, weight, place);
  const auto& tensor = find_tensor(set, place, place.form.shape(weight, place.rows.transposed), where);
  check_type(set, tensor, weight, place);
  source.tensor = own_part_of(tensor, weight, place);
  source.beside_codes = settings.format != code_format::none;
  source.rows = place.rows;
  return source;
}

void fill_weights(model_files& model, naming names, std::string_view prefix) {
  for (const auto& weight : detail::wanted_weights(model.config))
    model.weights.emplace(weight.name(),
                          source_of(model.file_tensors(), weight, place_of(weight, model.config, names, prefix),
                                    model.config.codes, model.path.string()));
  detail::refuse_unused(model, names, prefix);
}

/// A model within a folder that is none: the first of its .gguf files, which may be pieces of one, or a snapshot in
/// Hugging Face's cache. Empty if there is none.
std::filesystem::path model_within(const std::filesystem::path& folder) {
  std::filesystem::path first;
  for (const auto& entry : entries_of(folder))
    if (is_named_as_weights(entry) && (first.empty() || entry < first)) first = entry;
  if (!first.empty()) return first;
  for (const auto& entry : entries_of(folder / "snapshots"))
    if (path_exists(entry / "config.json")) return entry;
  return {};
}

model_config folder_config(const std::filesystem::path& folder) {
  if (path_exists(folder / "config.json")) return read_hf_config(folder);
  if (const auto metadata = find_gguf_metadata(folder)) return config_from_gguf(*metadata);
  if (path_exists(folder / "adapter_config.json"))
    refuse("{}: is an adapter: name the model that it adapts, and this folder with --adapter or adapters load",
           folder.string());
  const std::filesystem::path meant = model_within(folder);
  refuse("{}: has no config.json: {}", folder.string(),
         meant.empty() ? "name a model's folder" : fmt::format("name {}, if you mean that", meant.string()));
}

/// Qwen3-VL, Qwen3.5 and Gemma 4 are published so, but quantized with each expert by itself.
bool joins_experts(const model_files& model, std::string_view prefix) {
  if (model.config.codes.format != code_format::none) return false;
  const std::string_view part = model.config.experts.apart ? "experts" : "mlp.experts";
  for (std::int64_t layer = 0; layer < model.config.layers; ++layer)
    if (model.tensors.find(fmt::format("{}layers.{}.{}.gate_up_proj", prefix, layer, part))) return true;
  return false;
}

/// Names lack the prefix in models that were saved without their heads, as those for embeddings are; in those that also
/// see pictures it is longer.
std::string_view prefix_in(const model_files& model) {
  const auto has = [&](std::string_view name) { return model.tensors.find(name) != nullptr; };
  if (model.config.family == "gpt2") return has("transformer.wte.weight") ? "transformer." : "";
  if (model.config.family == "nemotronh" && has("backbone.embeddings.weight")) return "backbone.";
  std::string_view prefix = "model.";
  for (const std::string_view other : {"", "language_model.model.", "model.language_model."})
    if (has(fmt::format("{}embed_tokens.weight", other))) prefix = other;
  return prefix;
}

void open_folder(model_files& model) {
  model.config = folder_config(model.path);
  model.tensors = open_safetensors(model.path);
  if (model.config.file.sees_pictures && model.tensors.find(head_name(model))) model.config.tied_embeddings = false;
  if (is_packed(model.tensors)) return;
  const std::string_view prefix = prefix_in(model);
  if (model.config.family == "gpt2") return fill_weights(model, naming::gpt2, prefix);
  if (joins_experts(model, prefix)) model.config.file.experts_in_one_tensor = true;
  fill_weights(model, naming::hugging_face, prefix);
}

}  // namespace

bool is_packed(const tensor_set& tensors) {
  return tensors.metadata.contains(std::string(packed_layout_key));
}

std::string head_name(const model_files& model) {
  const wanted_weight head{.part = "lm_head", .kind = "weight"};
  return place_of(head, model.config, naming::hugging_face, prefix_in(model)).name;
}

model_files open_model(const std::filesystem::path& path) {
  model_files model;
  model.path = path;
  if (is_folder(path)) {
    open_folder(model);
    return model;
  }
  if (!path_exists(path))
    refuse("{}: there is no such model, and none is downloaded: fetch it, or name another folder or .gguf file",
           path.string());
  if (!is_gguf_file(path))
    refuse("{}: a model is a folder with config.json and safetensors, or a .gguf file", path.string());
  model.gguf = open_gguf(path);
  model.config = config_from_gguf(*model.gguf);
  fill_weights(model, naming::gguf, "");
  return model;
}

std::filesystem::path template_beside(const std::filesystem::path& gguf) {
  return gguf.parent_path() / (name_without_gguf(gguf.filename().string()) + ".jinja");
}

void copy_companion(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (!path_exists(from)) return;
  make_folder(to.parent_path());
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  if (error) fail_to_write(to, error.value());
}

void copy_companions(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const auto name : model_companions) copy_companion(from / name, to / name);
}

}  // namespace troupe
