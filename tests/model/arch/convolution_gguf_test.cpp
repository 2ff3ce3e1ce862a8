// GGUF files of models with short convolutions, made of the golden folders as llama.cpp's converter makes them.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "model/formats/model_files.hpp"
#include "tests/model/arch/golden_gguf.hpp"

namespace troupe {
namespace {

const std::array<renamed, 19> convolution_names = {{{"model.embed_tokens", "token_embd"},
                                                    {"model.embedding_norm", "token_embd_norm"},
                                                    {"model.layers.", "blk."},
                                                    {"operator_norm", "attn_norm"},
                                                    {"conv.in_proj", "shortconv.in_proj"},
                                                    {"conv.conv", "shortconv.conv"},
                                                    {"conv.out_proj", "shortconv.out_proj"},
                                                    {"self_attn.q_proj", "attn_q"},
                                                    {"self_attn.k_proj", "attn_k"},
                                                    {"self_attn.v_proj", "attn_v"},
                                                    {"self_attn.out_proj", "attn_output"},
                                                    {"self_attn.q_layernorm", "attn_q_norm"},
                                                    {"self_attn.k_layernorm", "attn_k_norm"},
                                                    {"feed_forward.w1", "ffn_gate"},
                                                    {"feed_forward.w2", "ffn_down"},
                                                    {"feed_forward.w3", "ffn_up"},
                                                    {"feed_forward.gate.", "ffn_gate_inp."},
                                                    {"feed_forward.expert_bias", "exp_probs_b.bias"},
                                                    {"feed_forward.experts.", "experts."}}};

test::gguf_builder metadata_of(const model_config& config, const std::string& arch) {
  test::gguf_builder file;
  const auto u32 = [&](const char* key, std::int64_t value) {
    file.u32(arch + "." + key, static_cast<std::uint32_t>(value));
  };
  file.string("general.architecture", arch).f32(arch + ".attention.layer_norm_rms_epsilon", config.norm_eps);
  file.f32(arch + ".rope.freq_base", static_cast<float>(config.rope.theta));
  u32("block_count", config.layers), u32("embedding_length", config.hidden), u32("context_length", config.context);
  u32("attention.head_count", config.heads), u32("shortconv.l_cache", config.convolved_rows);
  u32("feed_forward_length", config.experts.count > 0 ? config.experts.dense_ffn : config.ffn);
  std::vector<std::uint32_t> heads;
  for (const mixer_kind mixer : config.mixers)
    heads.push_back(mixer == mixer_kind::attention ? static_cast<std::uint32_t>(config.kv_heads) : 0);
  file.u32s(arch + ".attention.head_count_kv", heads);
  if (config.experts.count == 0) return file;
  u32("expert_count", config.experts.count), u32("expert_used_count", config.experts.taken),
      u32("expert_gating_func", 2);
  u32("expert_feed_forward_length", config.ffn), u32("leading_dense_block_count", 1);
  return file.f32(arch + ".expert_weights_scale", config.experts.share_factor);
}

/// "blk.1.experts.4.w2.weight" is a part of "blk.1.ffn_down_exps.weight".
std::string together(const std::string& name) {
  const char which = name[name.size() - std::string_view("1.weight").size()];
  const std::string kind = which == '1' ? "gate" : which == '2' ? "down" : "up";
  return name.substr(0, name.find("experts.")) + "ffn_" + kind + "_exps.weight";
}

void expect_the_same_convolutions(const std::string& model, const std::string& arch) {
  const model_files folder = open_model(golden / model);
  converted_tensors made;
  for (const auto& [name, tensor] : folder.tensors.tensors) {
    converted_tensor one = as_floats(tensor);
    if (name.find("conv.conv") != name.npos) one.sizes.erase(one.sizes.begin() + 1);
    const std::string to = with_names(name, convolution_names);
    if (to.find(".experts.") == to.npos) {
      made[to] = std::move(one);
      continue;
    }
    converted_tensor& all = made[together(to)];
    all.sizes = {one.sizes[0], one.sizes[1], static_cast<std::uint64_t>(folder.config.experts.count)};
    all.values.insert(all.values.end(), one.values.begin(), one.values.end());
  }
  expect_golden_logits(gguf_of(metadata_of(folder.config, arch), made), model);
}

TEST(gguf_of_short_convolutions, gives_the_reference_logits) {
  expect_the_same_convolutions("lfm2", "lfm2");
}

TEST(gguf_of_short_convolutions, may_have_experts) {
  expect_the_same_convolutions("lfm2-moe", "lfm2moe");
}

}  // namespace
}  // namespace troupe
