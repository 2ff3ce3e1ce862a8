#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/formats/gguf.hpp"
#include "model/formats/model_config.hpp"
#include "model/formats/row_order.hpp"
#include "model/formats/tensor.hpp"
#include "model/formats/weight_codes.hpp"

namespace troupe {

/// One of our weights inside a source file: which part of which tensor it is, and how to turn it round.
/// A matrix reads as [out, in] whatever the file does; a vector as [1, n].
struct weight_source {
  std::string origin;  ///< the name in the file, for messages and for `keep`
  tensor_view tensor;
  std::optional<weight_codes> codes;  ///< of a matrix that another program quantized; `tensor` has them
  bool beside_codes = false;          ///< the model's others are codes
  std::int64_t outs = 0;
  std::int64_t ins = 0;
  std::int64_t first_out = 0;  ///< our row 0 inside the tensor (a third of GPT-2's c_attn)
  std::int64_t first_in = 0;   ///< likewise our column 0, of one that is transposed
  std::int64_t step = 1;       ///< from our rows to the next (2: gpt-oss's gate and up take turns)
  bool transposed = false;     ///< the tensor is [in, out]: GPT-2's Conv1D
  row_order order = {};        ///< of rows that the file has in another order
  float plus = 0;              ///< is added to each number of a vector (Gemma's norms)
  float times = 1;             ///< then multiplies it

  /// Where our row is among the tensor's.
  std::int64_t file_row(std::int64_t row) const { return first_out + order.file_row(row) * step; }
  /// Our rows [first, first + count) as floats, [count, ins].
  void read_rows(std::int64_t first, std::int64_t count, float* to) const;
  /// Where our row starts in the file: only for tensors that are neither transposed nor codes.
  const std::byte* raw_row(std::int64_t row) const;
};

/// A model as it lies on disk. Our names, whatever the file's:
///   model.embed_tokens.weight [vocab, hidden]          model.embed_positions.weight [context, hidden] (gpt2)
///   model.layers.N.input_layernorm.weight/.bias        model.layers.N.post_attention_layernorm.weight/.bias
///   model.layers.N.self_attn.{q,k,v,o}_proj.weight/.bias       model.layers.N.self_attn.{q,k}_norm.weight
///   model.layers.N.mlp.{gate,up,down}_proj.weight/.bias        model.norm.weight/.bias        lm_head.weight
///   model.layers.N.{self_attn,mlp}.output_norm.weight (config.output_norms)
///   model.layers.N.mlp.router.weight [experts, hidden], model.layers.N.mlp.experts.E.{gate,up,down}_proj.weight
///   model.layers.N.self_attn.sinks.weight [heads], and biases of router and experts (gpt-oss)
///   model.layers.N.mlp.choice_bias.bias [experts] (config.experts.choice_bias)
///   model.layers.N.mlp.shared_gate.weight [1, hidden] (config.experts.shared_gate)
///   model.layers.N.self_attn.q_down_proj.weight, model.layers.N.self_attn.heads.H.{query,value}_up.weight
///   (config.latent)
///   model.layers.N.linear_attn.… in place of self_attn.… (delta_names.hpp)
/// lm_head.weight is absent where the embeddings are tied. Every weight the configuration asks for is there with the
/// right shape: opening refuses the model otherwise, by tensor, file and cause.
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

/// Where the template for requests with tools is, of a model that has one of its own.
inline constexpr std::string_view tool_template_file = "additional_chat_templates/tool_use.jinja";
/// Where older releases put the template of a model that sees pictures.
inline constexpr std::string_view old_template_file = "chat_template.json";
/// Files of a Hugging Face folder beside the weights.
inline constexpr std::array<std::string_view, 12> model_companions{
    "config.json",           "generation_config.json",  "tokenizer.json",   "tokenizer.model",
    "tokenizer_config.json", "special_tokens_map.json", "vocab.json",       "merges.txt",
    "added_tokens.json",     "chat_template.jinja",     tool_template_file, old_template_file};
/// Those that are there. Throws write_failure where one cannot be written.
void copy_companions(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace troupe
