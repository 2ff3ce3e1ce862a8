#include "model/lora/adapter_gguf.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/formats/family_traits.hpp"
#include "model/formats/gguf/gguf_families.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/weight_names.hpp"
#include "model/lora/adapter_reading.hpp"
#include "model/lora/peft_names.hpp"

namespace troupe::detail {
namespace {

constexpr std::string_view a_ending = ".lora_a", b_ending = ".lora_b";

/// One of our linear layers within a tensor of the base.
struct linear_place {
  std::int64_t layer = 0;
  linear_kind kind = linear_kind::q;
  std::int64_t outs = 0, ins = 0;
  weight_place at;
};

/// By the name of the tensor that an adapter adds to.
using linear_places = std::map<std::string, std::vector<linear_place>, std::less<>>;

struct gguf_factors {
  const tensor_view *a = nullptr, *b = nullptr;
};

/// What converters call families that have no name of their own in GGUF files.
struct converters_name {
  std::string_view family;
  std::vector<std::string_view> names;
};

std::vector<std::string_view> architectures_of(const model_config& base) {
  static const converters_name others[] = {
      {"mistral", {"llama", "mistral3"}},  // an older converter had another for what sees pictures
      {"mixtral", {"llama"}},
      {"ministral3", {"mistral3"}},
      {"olmo3", {"olmo2"}},
  };
  const auto other = std::ranges::find(others, std::string_view(base.family), &converters_name::family);
  if (other != std::end(others)) return other->names;
  const bool attends_everywhere = base.mixers.empty();
  if (base.family == "granitehybrid" && attends_everywhere) return {"granite"};
  return gguf_names_of(base);
}

void check_architecture(const gguf_file& file, const model_config& base) {
  const auto name = file.get<std::string>("general.architecture").value_or("");
  const auto right = architectures_of(base);
  if (std::find(right.begin(), right.end(), name) == right.end())
    refuse("{}: is an adapter for models of the architecture \"{}\", but the base is {}", file.name, name.substr(0, 80),
           fmt::join(right, " or "));
  if (base.family == "gpt2")
    refuse("{}: converters turn the factors of GPT-2's adapters round: load the folder that PEFT wrote", file.name);
  constexpr std::string_view activation = "adapter.alora.invocation_tokens";
  if (file.metadata.contains(activation))
    refuse("{}: \"{}\" is set: adapters that begin within a prompt are not supported", file.name, activation);
}

/// The names are those of the adapter's file, in which q, k and v, or with linear attention these and z, may be joined
/// otherwise than in the base's.
linear_places places_of(const gguf_file& file, model_config base) {
  const auto& tensors = file.tensors.tensors;
  const std::string_view joined = has_delta_layers(base.family) ? ".ssm_in." : ".attn_qkv.";
  base.file.joined_qkv = std::any_of(tensors.begin(), tensors.end(),
                                     [&](const auto& each) { return each.first.find(joined) != std::string::npos; });
  linear_places places;
  for (std::int64_t layer = 0; layer < base.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(base, layer)) {
      const auto [outs, ins] = linear_shape(base, layer, kind);
      const wanted_weight weight{.layer = layer, .part = name_of(kind), .kind = "weight", .outs = outs, .ins = ins};
      weight_place at = place_of(weight, base, naming::gguf, "");
      places[at.name].push_back({layer, kind, outs, ins, at});
    }
  return places;
}

[[noreturn]] void refuse_tensor(const std::string& name, const std::string& where) {
  const std::string shown = name.substr(0, 200);
  const bool is_factor = name.ends_with(a_ending) || name.ends_with(b_ending);
  if (name.starts_with("token_embd.") || name.starts_with("output."))
    refuse("{}: tensor \"{}\": the head and the embeddings cannot be adapted: train without them", where, shown);
  if (name.find("_norm.") != name.npos)
    refuse("{}: tensor \"{}\": norms cannot be adapted: train without them", where, shown);
  if (name.find("_exps.") != name.npos || name.find("ffn_gate_inp") != name.npos)
    refuse("{}: tensor \"{}\": experts and their router cannot be adapted: train without them", where, shown);
  if (!is_factor) refuse("{}: tensor \"{}\" is no {} or {} of a linear layer", where, shown, a_ending, b_ending);
  refuse("{}: tensor \"{}\": the base has no such linear layer", where, shown);
}

std::map<std::string, gguf_factors> pair_tensors(const gguf_file& file, const linear_places& places) {
  std::map<std::string, gguf_factors> pairs;
  for (const auto& [name, tensor] : file.tensors.tensors) {
    const bool is_a = name.ends_with(a_ending);
    const std::string adapted = name.substr(0, name.size() - std::min(name.size(), a_ending.size()));
    if ((!is_a && !name.ends_with(b_ending)) || !places.contains(adapted)) refuse_tensor(name, file.name);
    (is_a ? pairs[adapted].a : pairs[adapted].b) = &tensor;
  }
  for (const auto& [name, pair] : pairs)
    if (!pair.a || !pair.b) refuse("{}: \"{}\" has only one of {} and {}", file.name, name, a_ending, b_ending);
  return pairs;
}

/// Some writers leave a first size of 1 out.
std::vector<std::int64_t> shape_of(const tensor_view& factor) {
  auto shape = factor.shape;
  if (shape.size() == 1) shape.insert(shape.begin(), 1);
  return shape;
}

void check_factor(const tensor_view& factor, const std::vector<std::int64_t>& wanted, const std::string& name) {
  if (shape_of(factor) != wanted)
    refuse("{}: should have the shape {}, but has {}", name, text_of(wanted), text_of(factor.shape));
  if (factor.type == dtype::i8 || factor.type == dtype::i32)
    refuse("{}: has the type {}, which is not supported for it", name, name_of(factor.type));
}

/// Rows of ours, in our order.
std::vector<float> read_rows(const tensor_view& factor, std::int64_t rows, std::int64_t columns,
                             const rows_in_tensor& at, const std::string& name) {
  tensor_view matrix = factor;
  matrix.shape = shape_of(factor);
  const weight_source source{.origin = name, .tensor = std::move(matrix), .outs = rows, .ins = columns, .rows = at};
  std::vector<float> values(to_size(rows * columns));
  source.read_rows(0, rows, values.data());
  check_finite(values, name);
  return values;
}

/// Converters put the value heads of Qwen3.5 in another order than its folders have them in.
void check_heads(const linear_place& place, const model_config& base, const std::string& where) {
  const delta_config& delta = base.delta;
  if (!is_delta(place.kind) || delta.in_turn || delta.is_state_space || base.family == "qwen3next" ||
      delta.value_heads == delta.key_heads)
    return;
  refuse("{}: adapts {}, whose heads it has in another order than the base: load the folder that PEFT wrote", where,
         linear_name(place.layer, place.kind));
}

/// All linear layers within a tensor share A. An alpha of 0 means that all scales are 1.
void read_parts(const std::string& adapted, const gguf_factors& pair, const std::vector<linear_place>& places,
                double alpha, const model_config& base, const std::string& where, std::vector<adapter_part>& into) {
  const std::int64_t rank = shape_of(*pair.a).front(), ins = places.front().ins;
  const auto a_name = fmt::format("{}: tensor \"{}{}\"", where, adapted, a_ending);
  const auto b_name = fmt::format("{}: tensor \"{}{}\"", where, adapted, b_ending);
  if (rank < 1 || rank > most_adapter_rank)
    refuse("{}: has the rank {}, but should have 1 to {}", a_name, rank, most_adapter_rank);
  check_factor(*pair.a, {rank, ins}, a_name);
  check_factor(*pair.b, {places.front().at.form.all_outs, rank}, b_name);
  const auto a = read_rows(*pair.a, rank, ins, {}, a_name);
  check_heads(places.front(), base, where);
  for (const linear_place& place : places)
    into.push_back({.layer = place.layer,
                    .kind = place.kind,
                    .rank = rank,
                    .scale = alpha != 0 ? static_cast<float>(alpha / static_cast<double>(rank)) : 1.0f,
                    .a = a,
                    .b = read_rows(*pair.b, place.outs, rank, place.at.rows, b_name)});
}

/// What PEFT's configuration would say of them: the first one's rank, and by name what differs from that. They are
/// sorted, so that those with one name follow each other.
factor_rules rules_of(const std::vector<adapter_part>& parts, double alpha, const model_config& base) {
  factor_rules rules;
  if (parts.empty()) return rules;
  rules.rank = parts.front().rank;
  rules.alpha = alpha != 0 ? alpha : static_cast<double>(rules.rank);
  for (const adapter_part& part : parts) {
    const std::string name = peft_name(base, part.layer, part.kind);
    const bool is_there = !rules.rank_pattern.empty() && rules.rank_pattern.back().first == name;
    if (part.rank == rules.rank || is_there) continue;
    rules.rank_pattern.emplace_back(name, part.rank);
    if (alpha == 0) rules.alpha_pattern.emplace_back(name, static_cast<double>(part.rank));
  }
  return rules;
}

}  // namespace

gguf_file open_gguf_adapter(const std::filesystem::path& path) {
  gguf_file file = open_gguf(path);
  const auto text = [&](std::string_view key) { return file.get<std::string>(key).value_or("absent").substr(0, 80); };
  if (const auto type = text("general.type"); type != "adapter")
    refuse("{}: is no adapter: its \"general.type\" is {}", file.name, type);
  if (const auto type = text("adapter.type"); type != "lora")
    refuse("{}: its \"adapter.type\" is {}, but only lora is supported", file.name, type);
  return file;
}

adapter_file adapter_from_gguf(const gguf_file& file, const model_config& base) {
  check_architecture(file, base);
  const double alpha = file.get<double>("adapter.lora.alpha").value_or(0.0);
  if (!std::isfinite(alpha)) refuse("{}: \"adapter.lora.alpha\" is not finite", file.name);
  const linear_places places = places_of(file, base);
  adapter_file adapter;
  for (const auto& [adapted, pair] : pair_tensors(file, places))
    read_parts(adapted, pair, places.find(adapted)->second, alpha, base, file.name, adapter.parts);
  sort_parts(adapter.parts);
  adapter.factors = rules_of(adapter.parts, alpha, base);
  return adapter;
}

}  // namespace troupe::detail
