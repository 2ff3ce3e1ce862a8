// GGUF files of models with state spaces, made of the golden folders as llama.cpp's converter makes them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "model/formats/model_files.hpp"
#include "tests/model/arch/golden_gguf.hpp"

namespace troupe {
namespace {

const std::array<renamed, 18> state_space_names = {{{"model.embed_tokens", "token_embd"},
                                                    {"model.norm", "output_norm"},
                                                    {"lm_head", "output"},
                                                    {"model.layers.", "blk."},
                                                    {"input_layernorm", "attn_norm"},
                                                    {"post_attention_layernorm", "ffn_norm"},
                                                    {"self_attn.q_proj", "attn_q"},
                                                    {"self_attn.k_proj", "attn_k"},
                                                    {"self_attn.v_proj", "attn_v"},
                                                    {"self_attn.o_proj", "attn_output"},
                                                    {"mamba.in_proj", "ssm_in"},
                                                    {"mamba.conv1d", "ssm_conv1d"},
                                                    {"mamba.dt_bias", "ssm_dt.bias"},
                                                    {"mamba.A_log", "ssm_a"},
                                                    {"mamba.D", "ssm_d"},
                                                    {"mamba.norm", "ssm_norm"},
                                                    {"mamba.out_proj", "ssm_out"},
                                                    {"block_sparse_moe.router.layer", "ffn_gate_inp"}}};

/// The two halves of each head become neighbours.
void interleave(converted_tensor& tensor, std::int64_t heads) {
  const auto width = static_cast<std::int64_t>(tensor.sizes[0]);
  const std::int64_t dim = static_cast<std::int64_t>(tensor.sizes[1]) / heads;
  const std::vector<float> from = tensor.values;
  for (std::int64_t row = 0; row < heads * dim; ++row) {
    const std::int64_t within = row % dim, to = row - within + within % (dim / 2) * 2 + within / (dim / 2);
    std::copy_n(from.begin() + row * width, width, tensor.values.begin() + to * width);
  }
}

/// With the shape and the values that a file has under the name `to`.
converted_tensor as_converted(converted_tensor tensor, const std::string& to, const model_config& config) {
  const auto is = [&](const char* part) { return to.find(part) != to.npos; };
  if (is("attn_q")) interleave(tensor, config.heads);
  if (is("attn_k")) interleave(tensor, config.kv_heads);
  if (is("ssm_conv1d.weight")) tensor.sizes.erase(tensor.sizes.begin() + 1);
  if (is("ssm_norm"))
    tensor.sizes = {static_cast<std::uint64_t>(config.delta.norm_size()),
                    static_cast<std::uint64_t>(config.delta.key_heads)};
  if (to.ends_with("ssm_a") || to.ends_with("ssm_d")) tensor.sizes = {1, tensor.sizes[0]};
  for (float& value : tensor.values)
    if (to.ends_with("ssm_a")) value = -std::exp(value);
  return tensor;
}

class state_space_converter {
 public:
  explicit state_space_converter(const std::string& model) : folder_(open_model(golden / model)) {}

  std::string file() {
    for (const auto& [name, tensor] : folder_.tensors.tensors) convert(name, as_floats(tensor));
    return gguf_of(metadata(), made_);
  }

 private:
  /// Scores are divided by the root of score_dim; rows are over the residual factor here, and their norms' epsilon
  /// over its square.
  test::gguf_builder metadata() const {
    const model_config& config = folder_.config;
    const delta_config& delta = config.delta;
    test::gguf_builder file;
    const auto u32 = [&](const char* key, std::int64_t value) {
      file.u32(std::string("granitehybrid.") + key, static_cast<std::uint32_t>(value));
    };
    const auto f32 = [&](const char* key, double value) {
      file.f32(std::string("granitehybrid.") + key, static_cast<float>(value));
    };
    const double residual = std::sqrt(double(delta.norm_eps) / double(config.norm_eps));
    file.string("general.architecture", "granitehybrid");
    f32("attention.layer_norm_rms_epsilon", delta.norm_eps), f32("rope.freq_base", config.rope.theta);
    f32("residual_scale", residual), f32("embedding_scale", double(config.embedding_factor) * residual);
    f32("attention.scale", 1 / std::sqrt(config.score_dim)), f32("logit_scale", 1 / double(config.logit_factor));
    file.key("granitehybrid.rope.scaling.finetuned", 7, std::string(1, '\0'));
    u32("block_count", config.layers), u32("embedding_length", config.hidden), u32("context_length", config.context);
    u32("attention.head_count", config.heads), u32("feed_forward_length", config.ffn);
    u32("ssm.conv_kernel", delta.kernel), u32("ssm.state_size", delta.key_dim), u32("ssm.group_count", delta.key_heads);
    u32("ssm.time_step_rank", delta.value_heads), u32("ssm.inner_size", delta.values());
    std::vector<std::uint32_t> heads;
    for (const mixer_kind mixer : config.mixers)
      heads.push_back(mixer == mixer_kind::attention ? static_cast<std::uint32_t>(config.kv_heads) : 0);
    file.u32s("granitehybrid.attention.head_count_kv", heads);
    if (config.experts.count == 0) return file;
    u32("expert_count", config.experts.count), u32("expert_used_count", config.experts.taken);
    u32("expert_shared_feed_forward_length", config.experts.shared_ffn);
    return file;
  }

  void convert(const std::string& name, converted_tensor tensor) {
    std::string to = with_names(name, state_space_names);
    const bool has_experts = folder_.config.experts.count > 0;
    if (to.find("shared_mlp.input_linear") != to.npos || to.find("block_sparse_moe.input_linear") != to.npos)
      return put_halves(to, tensor);
    to = with_names(to,
                    std::array<renamed, 2>{{{"shared_mlp.output_linear", has_experts ? "ffn_down_shexp" : "ffn_down"},
                                            {"block_sparse_moe.output_linear", "ffn_down_exps"}}});
    made_[to] = as_converted(std::move(tensor), to, folder_.config);
  }

  /// Gate and up, of the mlp or of each expert.
  void put_halves(const std::string& to, const converted_tensor& both) {
    const bool is_shared = to.find("shared_mlp") != to.npos, has_experts = folder_.config.experts.count > 0;
    const std::string layer = to.substr(0, 6), ending = !is_shared ? "_exps" : has_experts ? "_shexp" : "";
    const auto half = static_cast<std::ptrdiff_t>(both.sizes[0] * both.sizes[1] / 2);
    std::vector<std::uint64_t> sizes = both.sizes;
    sizes[1] /= 2;
    for (auto from = both.values.begin(); from != both.values.end();)
      for (const char* part : {"ffn_gate", "ffn_up"}) {
        converted_tensor& one = made_[layer + part + ending + ".weight"];
        one.sizes = sizes;
        one.values.insert(one.values.end(), from, from + half);
        from += half;
      }
  }

  model_files folder_;
  converted_tensors made_;
};

TEST(gguf_of_state_spaces, gives_the_reference_logits) {
  expect_golden_logits(state_space_converter("granite-h").file(), "granite-h");
}

TEST(gguf_of_state_spaces, may_have_experts) {
  expect_golden_logits(state_space_converter("granite-h-moe").file(), "granite-h-moe");
}

const std::array<renamed, 21> nemotron_names = {{{"backbone.embeddings", "token_embd"},
                                                 {"backbone.norm_f", "output_norm"},
                                                 {"lm_head", "output"},
                                                 {"backbone.layers.", "blk."},
                                                 {"mixer.in_proj", "ssm_in"},
                                                 {"mixer.conv1d", "ssm_conv1d"},
                                                 {"mixer.dt_bias", "ssm_dt.bias"},
                                                 {"mixer.A_log", "ssm_a"},
                                                 {"mixer.D", "ssm_d"},
                                                 {"mixer.norm", "ssm_norm"},
                                                 {"mixer.out_proj", "ssm_out"},
                                                 {"mixer.q_proj", "attn_q"},
                                                 {"mixer.k_proj", "attn_k"},
                                                 {"mixer.v_proj", "attn_v"},
                                                 {"mixer.o_proj", "attn_output"},
                                                 {"mixer.up_proj", "ffn_up"},
                                                 {"mixer.down_proj", "ffn_down"},
                                                 {"mixer.gate.weight", "ffn_gate_inp.weight"},
                                                 {"mixer.gate.e_score_correction_bias", "exp_probs_b.bias"},
                                                 {"mixer.shared_experts.up_proj", "ffn_up_shexp"},
                                                 {"mixer.shared_experts.down_proj", "ffn_down_shexp"}}};

/// `predicting`: further layers, which predict several tokens at once.
test::gguf_builder nemotron_metadata(const model_config& config, std::uint32_t predicting) {
  const delta_config& delta = config.delta;
  const std::string architecture = config.experts.count > 0 ? "nemotron_h_moe" : "nemotron_h";
  test::gguf_builder file;
  const auto u32 = [&](const char* key, std::int64_t value) {
    file.u32(architecture + "." + key, static_cast<std::uint32_t>(value));
  };
  std::vector<std::uint32_t> heads, mlps;
  for (std::size_t i = 0; i < config.file.layers.size(); ++i) {
    const bool attends = config.mixers[i] == mixer_kind::attention;
    heads.push_back(attends ? static_cast<std::uint32_t>(config.kv_heads) : 0), mlps.push_back(0);
    if (config.file.layers[i].mlp < 0) continue;
    heads.push_back(0), mlps.push_back(static_cast<std::uint32_t>(config.ffn));
  }
  heads.resize(heads.size() + predicting, static_cast<std::uint32_t>(config.kv_heads));
  mlps.resize(mlps.size() + predicting, 0);
  if (predicting > 0) u32("nextn_predict_layers", predicting);
  file.string("general.architecture", architecture);
  file.f32(architecture + ".attention.layer_norm_rms_epsilon", config.norm_eps);
  u32("block_count", static_cast<std::int64_t>(heads.size())), u32("embedding_length", config.hidden);
  u32("context_length", config.context), u32("attention.head_count", config.heads);
  u32("rope.dimension_count", config.hidden / config.heads);
  u32("attention.key_length", config.head_dim), u32("attention.value_length", config.head_dim);
  u32("ssm.conv_kernel", delta.kernel), u32("ssm.state_size", delta.key_dim), u32("ssm.group_count", delta.key_heads);
  u32("ssm.time_step_rank", delta.value_heads), u32("ssm.inner_size", delta.values());
  file.u32s(architecture + ".attention.head_count_kv", heads);
  file.u32s(architecture + ".feed_forward_length", mlps);
  if (config.experts.count == 0) return file;
  u32("expert_count", config.experts.count), u32("expert_used_count", config.experts.taken);
  u32("expert_feed_forward_length", config.ffn), u32("expert_shared_count", 1);
  u32("expert_shared_feed_forward_length", config.experts.shared_ffn), u32("expert_group_count", 1);
  file.key(architecture + ".expert_weights_norm", 7, std::string(1, '\1'));
  return file.f32(architecture + ".expert_weights_scale", config.experts.share_factor);
}

/// "blk.1.mixer.experts.4.up_proj.weight" is a part of "blk.1.ffn_up_exps.weight".
std::string with_all_experts(const std::string& name) {
  const auto experts = name.find("mixer.experts.");
  if (experts == name.npos) return name;
  return name.substr(0, experts) + (name.find("up_proj") != name.npos ? "ffn_up" : "ffn_down") + "_exps.weight";
}

void put(converted_tensor one, const std::string& to, const model_config& config, converted_tensors& made) {
  if (!to.ends_with("_exps.weight")) {
    made[to] = as_converted(std::move(one), to, config);
    return;
  }
  converted_tensor& all = made[to];
  all.sizes = {one.sizes[0], one.sizes[1], static_cast<std::uint64_t>(config.experts.count)};
  all.values.insert(all.values.end(), one.values.begin(), one.values.end());
}

/// Experts come in the order of their names here: fewer than ten.
void expect_nemotron_logits(const std::string& golden_model, std::uint32_t predicting = 0) {
  const model_files folder = open_model(golden / golden_model);
  converted_tensors made;
  for (const auto& [name, tensor] : folder.tensors.tensors) {
    std::string to = with_all_experts(with_names(name, nemotron_names));
    if (to.ends_with(".norm.weight")) to.replace(to.size() - std::string_view("norm.weight").size(), 4, "attn_norm");
    put(as_floats(tensor), to, folder.config, made);
  }
  expect_golden_logits(gguf_of(nemotron_metadata(folder.config, predicting), made), golden_model);
}

TEST(gguf_of_state_spaces, of_nemotron_h_has_a_layer_for_each_part) {
  expect_nemotron_logits("nemotron-h");
}

TEST(gguf_of_state_spaces, of_nemotron_h_may_have_layers_of_experts) {
  expect_nemotron_logits("nemotron-h-moe");
}

TEST(gguf_of_state_spaces, of_nemotron_h_may_have_further_layers_that_predict) {
  expect_nemotron_logits("nemotron-h-moe", 1);
}

}  // namespace
}  // namespace troupe
