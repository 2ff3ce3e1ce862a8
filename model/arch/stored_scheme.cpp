#include "model/arch/stored_scheme.hpp"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include "base/field_error.hpp"
#include "model/ops/coded_row.hpp"

namespace troupe {
namespace {

/// The scheme that has a file's numbers as they are; none of what is read by columns.
std::optional<scheme> own_scheme(const weight_source& source) {
  if (source.rows.transposed) return std::nullopt;
  return source.codes ? scheme_of_codes(*source.codes) : scheme_of_blocks(source.tensor.type);
}

/// What the file's own type becomes when no scheme was asked for. Blocks and codes that are none of ours become u8g64,
/// which loses next to nothing of what 2 to 8 bits hold.
scheme native_scheme(const weight_source& source) {
  if (source.tensor.type == dtype::bf16) return scheme::bf16;
  const bool is_quantized = source.codes || block_of(source.tensor.type).elements > 1;
  return own_scheme(source).value_or(is_quantized ? scheme::u8g64 : scheme::f32);
}

bool has_in_name(const std::string& part, const std::string& name, const weight_source& source) {
  return name.find(part) != std::string::npos || source.origin.find(part) != std::string::npos;
}

bool is_kept(const load_options& options, const std::string& name, const weight_source& source) {
  return std::any_of(options.keep.begin(), options.keep.end(),
                     [&](const std::string& part) { return has_in_name(part, name, source); });
}

bool is_vocabulary(std::string_view name) {
  return name.starts_with("model.embed") || name.starts_with("lm_head");
}

/// Sixteen levels are too few for what every token passes through or every later token reads: embeddings, head, keys
/// and values. They are small in models with grouped heads, and in those with latent attention.
bool needs_eight_bits(std::string_view name) {
  return is_vocabulary(name) || name.ends_with("k_proj.weight") || name.ends_with("v_proj.weight") ||
         name.find(".self_attn.heads.") != name.npos;
}

/// A last bit of it may send a token to other experts, and it is small. So is what says how much of shared ones it
/// takes, and what linear attention decays and learns by, whose errors add up from row to row.
bool stays_float(std::string_view name) {
  for (const std::string_view part :
       {"mlp.router.weight", "mlp.shared_gate.weight", "linear_attn.in_proj_a.weight", "linear_attn.in_proj_b.weight"})
    if (name.ends_with(part)) return true;
  return false;
}

bool is_of_later_expert(std::string_view name) {
  return name.find(".experts.") != name.npos && name.find(".experts.0.") == name.npos;
}

/// The matrices outside of layers and in the first of them, with one of its experts, as examples.
std::string some_names(const model_files& source) {
  constexpr std::string_view layers = "model.layers.", first = "model.layers.0.", ending = ".weight";
  std::vector<std::string> names;
  for (const auto& [name, weight] : source.weights)
    if (weight.outs > 1 && (!name.starts_with(layers) || name.starts_with(first)) && !is_of_later_expert(name))
      names.push_back(name.substr(0, name.rfind(ending)));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool keeps_bits(const weight_source& source, scheme kind) {
  return own_scheme(source) == kind;
}

scheme stored_scheme(scheme asked, std::string_view name) {
  if (stays_float(name)) return scheme::f32;
  return has_nibbles(asked) && needs_eight_bits(name) ? scheme::q8 : asked;
}

scheme stored_scheme(const load_options& options, const std::string& name, const weight_source& source) {
  const scheme native = native_scheme(source);
  if (stays_float(name)) return scheme::f32;
  // In 16 or 32 bits they would be most of what a token reads of a model that was quantized to be fast.
  if (!options.quant && source.beside_codes && is_vocabulary(name)) return scheme::q8;
  if (!options.quant || keeps_bits(source, *options.quant)) return native;
  if (is_kept(options, name, source)) return is_integer(native) ? scheme::f32 : native;
  return stored_scheme(*options.quant, name);
}

load_options with_tied_head(load_options options, const model_config& config) {
  constexpr std::string_view head = "lm_head.weight";
  if (config.tied_embeddings)
    for (std::string& part : options.keep)
      if (part.find("head") != part.npos && head.find(part) != head.npos) part = "model.embed_tokens.weight";
  return options;
}

void check_keep(const model_files& source, const load_options& options) {
  for (const auto& part : options.keep) {
    const bool found = std::any_of(source.weights.begin(), source.weights.end(),
                                   [&](const auto& entry) { return has_in_name(part, entry.first, entry.second); });
    if (!found)
      refuse_field("keep",
                   fmt::format("{}: keep = \"{}\": no layer has that in its name: name a part of {} or the like",
                               source.path.string(), part, some_names(source)));
  }
}

}  // namespace troupe
