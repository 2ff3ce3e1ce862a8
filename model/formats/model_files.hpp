#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/formats/gguf/gguf.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/rows_in_tensor.hpp"
#include "model/formats/tensors/tensor.hpp"
#include "model/formats/tensors/weight_codes.hpp"

namespace troupe {

/// One of our weights inside a source file: which part of which tensor it is, and how to turn it round.
/// A matrix reads as [out, in] whatever the file does; a vector as [1, n].
struct weight_source {
  std::string origin = {};  ///< the name in the file, for messages and for `keep`
  tensor_view tensor = {};
  std::optional<weight_codes> codes = {};  ///< of a matrix that another program quantized; `tensor` has them
  bool beside_codes = false;               ///< the model's others are codes
  std::int64_t outs = 0;
  std::int64_t ins = 0;
  rows_in_tensor rows = {};

  /// Our rows [first, first + count) as floats, [count, ins].
  void read_rows(std::int64_t first, std::int64_t count, float* to) const;
  /// Where our row starts in the file: only for tensors that are neither transposed nor codes.
  const std::byte* raw_row(std::int64_t row) const;
};

/// A model as it lies on disk. Our names, whatever the file's (wanted_weights.cpp asks for them):
///   model.embed_tokens.weight [vocab, hidden]          model.embed_positions.weight [context, hidden] (gpt2)
///   model.norm.weight/.bias                            lm_head.weight, unless the embeddings are tied
/// Those of token numbers (config.layer_embedding):
///   model.embed_tokens_per_layer.weight [vocab, layers * layer_embedding]
///   model.per_layer_model_projection.weight            model.per_layer_projection_norm.weight
/// Of each layer, behind "model.layers.N.":
///   input_layernorm.weight/.bias                       post_attention_layernorm.weight/.bias
///   {self_attn,mlp}.output_norm.weight/.bias (config.output_norms)
///   self_attn.{q,k,v,o}_proj.weight/.bias              self_attn.{q,k}_norm.weight
///   self_attn.sinks.weight [heads] (gpt-oss)
///   self_attn.q_down_proj.weight, self_attn.heads.H.{query,value}_up.weight (config.latent)
///   linear_attn.… in place of self_attn.… (delta_names.hpp), of a state space as well:
///     {in_proj_qkv,in_proj_z,in_proj_b,in_proj_a,out_proj}.weight, conv1d.weight/.bias, dt.bias, decay.weight,
///     skip.weight, norm.weight
///   conv.{in,out}_proj.weight, conv.conv.weight [rows, hidden], likewise (short convolutions)
///   mlp.{gate,up,down}_proj.weight/.bias
///   mlp.router.weight/.bias [experts, hidden], mlp.experts.E.{gate,up,down}_proj.weight/.bias
///   mlp.choice_bias.bias [experts] (config.experts.choice_bias)
///   mlp.shared_gate.weight [1, hidden] (config.experts.shared_gate)
///   mlp.{beside,experts,experts_output,router}_norm.weight, mlp.share_factors.weight [experts]
///   (config.experts.apart)
///   per_layer_input_gate.weight, per_layer_projection.weight, post_per_layer_input_norm.weight
///   (config.layer_embedding)
///   layer_factor.weight [1] (config.layer_factors)
/// Every weight the configuration asks for is there with the right shape: opening refuses the model otherwise, by
/// tensor, file and cause.
struct model_files {
  std::filesystem::path path;
  model_config config;
  tensor_set tensors;             ///< the files, and the tensors under the names that the files use
  std::optional<gguf_file> gguf;  ///< set when the model is a GGUF file (its tensors are in there)
  std::map<std::string, weight_source, std::less<>> weights;

  /// Of either kind.
  const tensor_set& file_tensors() const { return gguf ? gguf->tensors : tensors; }
};

/// In the metadata of a file whose weights are packed, under our names: which arrangement they have (packed_file.hpp).
inline constexpr std::string_view packed_layout_key = "troupe.layout";
/// And which scheme was asked for: "u8", or "native".
inline constexpr std::string_view packed_quantization_key = "troupe.quantization";
bool is_packed(const tensor_set& tensors);

/// What a folder's files call a head of the model's own, if there is one. Of a model that sees pictures the files
/// decide whether the embeddings are the head: what its config.json says of that may be said twice, and differ.
std::string head_name(const model_files& model);

/// `path`: a Hugging Face folder or a .gguf file. Of a packed model `weights` is empty.
model_files open_model(const std::filesystem::path& path);

/// Where a folder's template is, unless tokenizer_config.json has it.
inline constexpr std::string_view usual_template_file = "chat_template.jinja";
/// Where the template for requests with tools is, of a model that has one of its own.
inline constexpr std::string_view tool_template_file = "additional_chat_templates/tool_use.jinja";
/// Where older releases put the template of a model that sees pictures.
inline constexpr std::string_view old_template_file = "chat_template.json";
/// Files of a Hugging Face folder beside the weights.
inline constexpr std::array<std::string_view, 12> model_companions{
    "config.json",           "generation_config.json",  "tokenizer.json",   "tokenizer.model",
    "tokenizer_config.json", "special_tokens_map.json", "vocab.json",       "merges.txt",
    "added_tokens.json",     usual_template_file,       tool_template_file, old_template_file};
/// Where the template of a .gguf file is that has none, or another one than it should be used with: NAME.jinja beside
/// NAME.gguf, since several may share a folder.
std::filesystem::path template_beside(const std::filesystem::path& gguf);
/// If it is there. Throws write_failure where it cannot be written.
void copy_companion(const std::filesystem::path& from, const std::filesystem::path& to);
/// Of a folder, those that are there.
void copy_companions(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace troupe
