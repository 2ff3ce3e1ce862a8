#include "model/formats/unused_tensors.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/number_in.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

/// "self_attn.q_proj" and "bias" of "self_attn.q_proj.bias".
struct split_name {
  std::string_view module, last;
};

split_name split_at_last_dot(std::string_view name) {
  const auto dot = name.rfind('.');
  if (dot == name.npos) return {{}, name};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool is_one_of(std::string_view name, const auto& known) {
  return std::find(known.begin(), known.end(), name) != known.end();
}

bool is_of_zeros(const tensor_view& tensor) {
  if (tensor.type != dtype::f32 && tensor.type != dtype::f16 && tensor.type != dtype::bf16) return false;
  std::vector<float> values(to_size(tensor.elements()));
  to_floats(tensor.type, tensor.data.data(), tensor.elements(), values.data());
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

class tensor_check {
 public:
  tensor_check(const model_files& model, naming names, std::string_view prefix)
      : model_(model),
        is_gguf_(names == naming::gguf),
        layers_(is_gguf_ ? "blk." : std::string(prefix) + (names == naming::gpt2 ? "h." : "layers.")) {
    for (const auto& [name, source] : model.weights) used_.insert(source.origin);
  }

  void operator()(const std::string& name, const tensor_view* tensor) const {
    if (!is_of_layer(name) || used_.contains(name) || is_of_shared_keys(name)) return;
    if (is_gguf_ ? is_table(name) || is_of_latent_heads(name) : changes_nothing(name, tensor)) return;
    refuse("{}: has the tensor \"{}\", which models of the architecture {} {}do not have: it is another one{}",
           model_.path.string(), name.substr(0, 200), model_.config.family,
           is_gguf_ ? "" : "as config.json describes it ", is_gguf_ ? "" : ", or config.json is wrong");
  }

 private:
  std::optional<std::int64_t> layer_of(std::string_view name) const {
    if (!name.starts_with(layers_)) return std::nullopt;
    return number_in<std::int64_t>(name.substr(layers_.size(), name.find('.', layers_.size()) - layers_.size()));
  }
  bool is_of_layer(std::string_view name) const {
    const auto number = layer_of(name);
    return number && *number < model_.config.layers;
  }
  /// Files of Gemma 4 have keys and values for layers that read those of others.
  bool is_of_shared_keys(std::string_view name) const {
    if (!model_.config.shares_keys(*layer_of(name))) return false;
    for (const std::string_view part : {".self_attn.k_", ".self_attn.v_", ".attn_k", ".attn_v"})
      if (name.find(part) != name.npos) return true;
    return false;
  }

  /// Some GGUF files have what heads read and give together, too.
  bool is_of_latent_heads(std::string_view name) const {
    return model_.config.is_latent() && name.ends_with(".attn_kv_b.weight");
  }

  static bool is_table(std::string_view name) {
    return name.find(".rope_") != name.npos || name.find("rot_embd") != name.npos;
  }

  bool changes_nothing(std::string_view name, const tensor_view* tensor) const {
    if (name.find(".rotary_emb.") != name.npos || name.ends_with("._extra_state")) return true;
    const auto [module, last] = split_at_last_dot(name);
    constexpr std::array<std::string_view, 2> masks = {"bias", "masked_bias"};
    constexpr std::array<std::string_view, 8> scales = {
        "q_scale", "k_scale", "v_scale", "kv_scale", "prob_scale", "prob_output_scale", "k_zero_point", "v_zero_point"};
    const bool is_attention = split_at_last_dot(module).last.ends_with("attn");
    if (is_attention && (is_one_of(last, masks) || is_one_of(last, scales))) return true;
    if (last == "bias") return tensor && is_of_zeros(*tensor);
    return is_of_codes(name, module);
  }

  bool is_of_codes(std::string_view name, std::string_view module) const {
    if (model_.config.codes.format == code_format::none) return false;
    for (const std::string_view ending : {"_blocks", "_scales"})
      if (name.ends_with(ending) && used_.contains(name.substr(0, name.size() - ending.size()))) return true;
    return used_.contains(std::string(module) + ".weight");
  }

  const model_files& model_;
  bool is_gguf_;
  std::string layers_;  ///< the beginning of the names of what lies in layers
  std::set<std::string_view> used_;
};

}  // namespace

void refuse_unused(const model_files& model, naming names, std::string_view prefix) {
  const tensor_check check(model, names, prefix);
  const tensor_set& set = model.file_tensors();
  for (const auto& [name, tensor] : set.tensors) check(name, &tensor);
  for (const auto& [name, type] : set.unread) check(name, nullptr);
}

}  // namespace troupe::detail
