// What GGUF names and lays out otherwise, against the golden models as Hugging Face has them.
#include <map>

#include <gtest/gtest.h>

#include "base/to_size.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "tests/base/places.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe {
namespace {

using test::golden;
using floats = std::vector<float>;

/// A tensor of the folder, and what the converter calls it and does to it.
struct converted {
  const char *from, *to;
  std::int64_t turned_heads = 0;  ///< whose rows become pairs of neighbours
};

const std::vector<converted> phi3_parts = {
    {"input_layernorm", "attn_norm"},         {"self_attn.qkv_proj", "attn_qkv"}, {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"}, {"mlp.gate_up_proj", "ffn_up"},     {"mlp.down_proj", "ffn_down"}};
const std::vector<converted> smollm3_parts = {
    {"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q", 4},   {"self_attn.k_proj", "attn_k", 2},
    {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"}};
const std::vector<converted> gemma3_parts = {{"input_layernorm", "attn_norm"},
                                             {"self_attn.q_proj", "attn_q"},
                                             {"self_attn.q_norm", "attn_q_norm"},
                                             {"self_attn.k_proj", "attn_k"},
                                             {"self_attn.k_norm", "attn_k_norm"},
                                             {"self_attn.v_proj", "attn_v"},
                                             {"self_attn.o_proj", "attn_output"},
                                             {"post_attention_layernorm", "post_attention_norm"},
                                             {"pre_feedforward_layernorm", "ffn_norm"},
                                             {"mlp.gate_proj", "ffn_gate"},
                                             {"mlp.up_proj", "ffn_up"},
                                             {"mlp.down_proj", "ffn_down"},
                                             {"post_feedforward_layernorm", "post_ffw_norm"}};
const std::vector<converted> gemma2_parts = {{"input_layernorm", "attn_norm"},
                                             {"self_attn.q_proj", "attn_q"},
                                             {"self_attn.k_proj", "attn_k"},
                                             {"self_attn.v_proj", "attn_v"},
                                             {"self_attn.o_proj", "attn_output"},
                                             {"post_attention_layernorm", "post_attention_norm"},
                                             {"pre_feedforward_layernorm", "ffn_norm"},
                                             {"mlp.gate_proj", "ffn_gate"},
                                             {"mlp.up_proj", "ffn_up"},
                                             {"mlp.down_proj", "ffn_down"},
                                             {"post_feedforward_layernorm", "post_ffw_norm"}};

const std::vector<converted> olmo2_parts = {{"self_attn.q_proj", "attn_q"},
                                            {"self_attn.q_norm", "attn_q_norm"},
                                            {"self_attn.k_proj", "attn_k"},
                                            {"self_attn.k_norm", "attn_k_norm"},
                                            {"self_attn.v_proj", "attn_v"},
                                            {"self_attn.o_proj", "attn_output"},
                                            {"post_attention_layernorm", "post_attention_norm"},
                                            {"mlp.gate_proj", "ffn_gate"},
                                            {"mlp.up_proj", "ffn_up"},
                                            {"mlp.down_proj", "ffn_down"},
                                            {"post_feedforward_layernorm", "post_ffw_norm"}};

const std::vector<converted> mixture_parts = {{"input_layernorm", "attn_norm"},
                                              {"self_attn.q_proj", "attn_q"},
                                              {"self_attn.q_norm", "attn_q_norm"},
                                              {"self_attn.k_proj", "attn_k"},
                                              {"self_attn.k_norm", "attn_k_norm"},
                                              {"self_attn.v_proj", "attn_v"},
                                              {"self_attn.o_proj", "attn_output"},
                                              {"post_attention_layernorm", "ffn_norm"},
                                              {"mlp.gate", "ffn_gate_inp"},
                                              {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
                                              {"mlp.experts.*.up_proj", "ffn_up_exps"},
                                              {"mlp.experts.*.down_proj", "ffn_down_exps"}};

/// Where the class turns neighbours, the converter leaves the rows as they are.
const std::vector<converted> glm_parts = {{"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
                                          {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
                                          {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
                                          {"mlp.gate_up_proj", "ffn_up"},      {"mlp.down_proj", "ffn_down"}};
const std::vector<converted> glm4_parts = {{"input_layernorm", "attn_norm"},
                                           {"self_attn.q_proj", "attn_q"},
                                           {"self_attn.k_proj", "attn_k"},
                                           {"self_attn.v_proj", "attn_v"},
                                           {"self_attn.o_proj", "attn_output"},
                                           {"post_self_attn_layernorm", "post_attention_norm"},
                                           {"post_attention_layernorm", "ffn_norm"},
                                           {"mlp.gate_up_proj", "ffn_up"},
                                           {"mlp.down_proj", "ffn_down"},
                                           {"post_mlp_layernorm", "post_ffw_norm"}};
const std::vector<converted> ernie_parts = {
    {"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q"},      {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.gate_proj", "ffn_gate"},    {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"}};
const std::vector<converted> cohere_parts = {{"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
                                             {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
                                             {"self_attn.o_proj", "attn_output"}, {"mlp.gate_proj", "ffn_gate"},
                                             {"mlp.up_proj", "ffn_up"},           {"mlp.down_proj", "ffn_down"}};
const std::vector<converted> seed_parts = {
    {"input_layernorm", "attn_norm"},    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},      {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "post_attention_norm"},
    {"mlp.gate_proj", "ffn_gate"},       {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"}};
const std::vector<converted> arcee_parts = {
    {"input_layernorm", "attn_norm"}, {"self_attn.q_proj", "attn_q", 4},   {"self_attn.k_proj", "attn_k", 2},
    {"self_attn.v_proj", "attn_v"},   {"self_attn.o_proj", "attn_output"}, {"post_attention_layernorm", "ffn_norm"},
    {"mlp.up_proj", "ffn_up"},        {"mlp.down_proj", "ffn_down"}};
/// As converted from the files of GLM 4's first release.
const std::vector<converted> joined_glm_parts = {
    {"input_layernorm", "attn_norm"},         {"self_attn.?_proj", "attn_qkv"}, {"self_attn.o_proj", "attn_output"},
    {"post_attention_layernorm", "ffn_norm"}, {"mlp.gate_up_proj", "ffn_up"},   {"mlp.down_proj", "ffn_down"}};

/// Weights and biases.
const std::vector<converted> gpt_oss_linears = {{"self_attn.q_proj", "attn_q"},
                                                {"self_attn.k_proj", "attn_k"},
                                                {"self_attn.v_proj", "attn_v"},
                                                {"self_attn.o_proj", "attn_output"},
                                                {"mlp.router", "ffn_gate_inp"}};

/// Of our names, what lies in layers with a shared mlp.
const std::map<std::string, std::string> shared_parts = {{"input_layernorm", "attn_norm"},
                                                         {"self_attn.q_proj", "attn_q"},
                                                         {"self_attn.k_proj", "attn_k"},
                                                         {"self_attn.v_proj", "attn_v"},
                                                         {"self_attn.o_proj", "attn_output"},
                                                         {"self_attn.q_norm", "attn_q_norm"},
                                                         {"self_attn.k_norm", "attn_k_norm"},
                                                         {"mlp.router", "ffn_gate_inp"},
                                                         {"mlp.choice_bias", "exp_probs_b"},
                                                         {"mlp.shared_gate", "ffn_gate_inp_shexp"},
                                                         {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
                                                         {"mlp.experts.*.up_proj", "ffn_up_exps"},
                                                         {"mlp.experts.*.down_proj", "ffn_down_exps"}};

class gguf_names : public testing::Test {
 protected:
  /// From our names, of mixtures with an mlp beside the experts, or with biases of their choice.
  void expect_the_same_of_shared(const std::string& model, const std::string& second_norm) {
    const model_files folder = open_model(golden / model);
    test::gguf_builder file = metadata_of(folder.config.family, folder.config);
    std::map<std::string, floats> experts;
    for (const auto& [name, weight] : folder.weights) {
      const std::string to = gguf_name(name, folder.config, second_norm);
      floats values = rows_of(weight);
      for (const auto& [part, heads] :
           {std::pair{".q_proj.", folder.config.heads}, {".k_proj.", folder.config.kv_heads}})
        if (folder.config.file.turns_neighbours && name.find(part) != name.npos)
          values = with_neighbours(values, weight.outs, weight.ins, heads);
      const auto outs = static_cast<std::uint64_t>(weight.outs), ins = static_cast<std::uint64_t>(weight.ins);
      if (to.ends_with("_exps.weight")) {
        floats& all = experts[to];
        all.insert(all.end(), values.begin(), values.end());
        if (all.size() == values.size() * to_size(folder.config.experts.count))
          add_floats(to, {ins, outs, static_cast<std::uint64_t>(folder.config.experts.count)}, all, file);
      } else {
        const bool is_vector = outs == 1;
        add_floats(to, is_vector ? std::vector{ins} : std::vector{ins, outs}, values, file);
      }
    }
    folder_.write("model.gguf", file.build());
    const model_files read = open_model(folder_.path() / "model.gguf");
    ASSERT_EQ(read.weights.size(), folder.weights.size());
    for (const auto& [name, weight] : folder.weights)
      EXPECT_EQ(rows_of(read.weights.at(name)), rows_of(weight)) << name;
  }
  static std::string gguf_name(std::string name, const model_config& config, const std::string& second_norm) {
    if (name == "model.embed_tokens.weight") return "token_embd.weight";
    if (name == "model.norm.weight") return "output_norm.weight";
    if (name == "lm_head.weight") return "output.weight";
    name.erase(0, std::string("model.layers.").size());
    const std::int64_t layer = name.front() - '0';
    std::string part = name.substr(2, name.rfind('.') - 2);
    const std::string kind = name.substr(name.rfind('.'));
    if (const auto expert = part.find("experts."); expert != part.npos) part[expert + 8] = '*';
    std::string to;
    if (part == "post_attention_layernorm") to = second_norm;
    for (const std::string inner : {"gate", "up", "down"})
      if (part == "mlp." + inner + "_proj") to = "ffn_" + inner + (config.has_experts(layer) ? "_shexp" : "");
    if (to.empty()) to = shared_parts.at(part);
    return "blk." + std::to_string(layer) + "." + to + kind;
  }
  void expect_the_same_weights(const std::string& model, const std::vector<converted>& parts, bool tied,
                               float added_to_norms) {
    const model_files folder = open_model(golden / model);
    test::gguf_builder file = metadata_of(folder.config.family, folder.config);
    const auto add = [&](const std::string& from, const std::string& to, std::int64_t heads) {
      add_tensor(folder, from + ".weight", to + ".weight", heads, added_to_norms, file);
      std::string bias = from + ".bias";
      if (const auto any = bias.find('?'); any != bias.npos) bias[any] = 'q';
      if (folder.tensors.find(bias)) add_tensor(folder, from + ".bias", to + ".bias", heads, 0, file);
    };
    if (folder.config.family == "gpt-oss") add_gpt_oss(folder, file);
    add("model.embed_tokens", "token_embd", 0);
    add("model.norm", "output_norm", 0);
    if (!tied) add("lm_head", "output", 0);
    for (std::int64_t layer = 0; layer < folder.config.layers; ++layer)
      for (const converted& part : parts)
        add("model.layers." + std::to_string(layer) + "." + part.from, "blk." + std::to_string(layer) + "." + part.to,
            part.turned_heads);
    folder_.write("model.gguf", file.build());
    const model_files read = open_model(folder_.path() / "model.gguf");
    ASSERT_EQ(read.weights.size(), folder.weights.size());
    for (const auto& [name, weight] : folder.weights)
      EXPECT_EQ(rows_of(read.weights.at(name)), rows_of(weight)) << name;
  }

 private:
  static test::gguf_builder metadata_of(const std::string& model, const model_config& config) {
    const std::string family = model == "glm" ? "chatglm" : model == "cohere" ? "command-r" : model;
    test::gguf_builder file;
    if (config.rotary_dim > 0)
      file.u32(family + ".rope.dimension_count", static_cast<std::uint32_t>(config.rotary_dim));
    const auto u32 = [&](const char* key, std::int64_t value) {
      file.u32(family + "." + key, static_cast<std::uint32_t>(value));
    };
    if (config.experts.count > 0)
      u32("expert_count", config.experts.count), u32("expert_used_count", config.experts.taken);
    if (config.experts.count > 0) u32("expert_feed_forward_length", config.ffn);
    if (config.experts.shared_ffn > 0) {
      u32("expert_shared_feed_forward_length", config.experts.shared_ffn);
      u32("expert_shared_count", config.experts.shared_ffn / config.ffn);
      u32("leading_dense_block_count", 1);
    }
    const std::string norm = config.norm == norm_kind::layer ? "layer_norm" : "layer_norm_rms";
    file.string("general.architecture", family).f32(family + ".attention." + norm + "_epsilon", config.norm_eps);
    u32("block_count", config.layers), u32("embedding_length", config.hidden);
    u32("feed_forward_length", config.experts.dense_ffn > 0 ? config.experts.dense_ffn : config.ffn);
    u32("context_length", config.context);
    u32("attention.head_count", config.heads), u32("attention.head_count_kv", config.kv_heads);
    file.f32(family + ".logit_scale", 4.0f);
    u32("attention.key_length", config.head_dim), u32("attention.sliding_window", 16);
    return file;
  }
  static void add_tensor(const model_files& folder, const std::string& from, const std::string& to, std::int64_t heads,
                         float added_to_norms, test::gguf_builder& file) {
    if (from.find('*') != from.npos) return add_experts(folder, from, to, file);
    if (from.find('?') != from.npos) return add_joined(folder, from, to, file);
    const tensor_view& tensor = *folder.tensors.find(from);
    floats values = floats_of(tensor);
    if (tensor.shape.size() == 1)
      for (float& value : values) value += added_to_norms;
    if (heads > 0) values = with_neighbours(values, tensor.shape[0], tensor.shape[1], heads);
    add_floats(to, {tensor.shape.rbegin(), tensor.shape.rend()}, values, file);
  }
  /// Queries, keys and values, one after the other.
  static void add_joined(const model_files& folder, const std::string& from, const std::string& to,
                         test::gguf_builder& file) {
    floats all;
    std::vector<std::uint64_t> sizes;
    for (const char letter : {'q', 'k', 'v'}) {
      std::string name = from;
      name[name.find('?')] = letter;
      const tensor_view& tensor = *folder.tensors.find(name);
      const floats values = floats_of(tensor);
      all.insert(all.end(), values.begin(), values.end());
      const std::vector<std::uint64_t> own(tensor.shape.rbegin(), tensor.shape.rend());
      if (sizes.empty())
        sizes = own;
      else
        sizes.back() += own.back();
    }
    add_floats(to, sizes, all, file);
  }
  static void add_floats(const std::string& name, const std::vector<std::uint64_t>& sizes, const floats& values,
                         test::gguf_builder& file) {
    file.tensor(name, sizes, 0,
                std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  }
  static floats floats_of(const tensor_view& tensor) {
    floats values(to_size(tensor.elements()));
    to_floats(tensor.type, tensor.data.data(), tensor.elements(), values.data());
    return values;
  }
  /// What lies otherwise than in other families: experts together, [in, out], with gate and up in turn.
  static void add_gpt_oss(const model_files& folder, test::gguf_builder& file) {
    const auto experts = to_size(folder.config.experts.count);
    for (std::int64_t layer = 0; layer < folder.config.layers; ++layer) {
      const std::string from = "model.layers." + std::to_string(layer) + ".", to = "blk." + std::to_string(layer) + ".";
      const auto get = [&](const std::string& name) -> const tensor_view& { return *folder.tensors.find(from + name); };
      const auto add = [&](const std::string& name, const tensor_view& tensor) {
        add_floats(to + name, {tensor.shape.rbegin(), tensor.shape.rend()}, floats_of(tensor), file);
      };
      for (const converted& part : gpt_oss_linears) {
        const std::string ours = part.from, theirs = part.to;
        add(theirs + ".weight", get(ours + ".weight"));
        add(theirs + ".bias", get(ours + ".bias"));
      }
      add("attn_norm.weight", get("input_layernorm.weight"));
      add("post_attention_norm.weight", get("post_attention_layernorm.weight"));
      add("attn_sinks.weight", get("self_attn.sinks"));
      add("ffn_down_exps.bias", get("mlp.experts.down_proj_bias"));
      const auto put = [&](const char* name, const char* tensor, std::size_t first, std::size_t step) {
        const tensor_view& all = get(tensor);
        const floats values = floats_of(all);
        const bool is_bias = all.shape.size() == 2;
        const std::size_t ins = is_bias ? 1 : std::size_t(all.shape[1]), wide = std::size_t(all.shape.back());
        floats turned;
        for (std::size_t expert = 0; expert < experts; ++expert)
          for (std::size_t out = first; out < wide; out += step)
            for (std::size_t in = 0; in < ins; ++in) turned.push_back(values[(expert * ins + in) * wide + out]);
        std::vector<std::uint64_t> sizes{wide / step, experts};
        if (!is_bias) sizes.insert(sizes.begin(), ins);
        add_floats(to + name, sizes, turned, file);
      };
      put("ffn_gate_exps.weight", "mlp.experts.gate_up_proj", 0, 2);
      put("ffn_up_exps.weight", "mlp.experts.gate_up_proj", 1, 2);
      put("ffn_gate_exps.bias", "mlp.experts.gate_up_proj_bias", 0, 2);
      put("ffn_up_exps.bias", "mlp.experts.gate_up_proj_bias", 1, 2);
      put("ffn_down_exps.weight", "mlp.experts.down_proj", 0, 1);
    }
  }
  /// One tensor with a dimension more.
  static void add_experts(const model_files& folder, const std::string& from, const std::string& to,
                          test::gguf_builder& file) {
    floats all;
    const tensor_view* tensor = nullptr;
    for (std::int64_t expert = 0; expert < folder.config.experts.count; ++expert) {
      std::string name = from;
      tensor = folder.tensors.find(name.replace(name.find('*'), 1, std::to_string(expert)));
      const floats values = floats_of(*tensor);
      all.insert(all.end(), values.begin(), values.end());
    }
    std::vector<std::uint64_t> sizes(tensor->shape.rbegin(), tensor->shape.rend());
    sizes.push_back(static_cast<std::uint64_t>(folder.config.experts.count));
    add_floats(to, sizes, all, file);
  }
  /// Row p of a head's first half becomes row 2 p, row p of the second half row 2 p + 1.
  static floats with_neighbours(const floats& from, std::int64_t rows, std::int64_t width, std::int64_t heads) {
    floats to(from.size());
    const std::int64_t dim = rows / heads;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t head = row / dim, within = row % dim, half = within / (dim / 2), pair = within % (dim / 2);
      std::copy_n(from.begin() + row * width, width, to.begin() + (head * dim + 2 * pair + half) * width);
    }
    return to;
  }
  static floats rows_of(const weight_source& source) {
    floats values(to_size(source.outs * source.ins));
    source.read_rows(0, source.outs, values.data());
    return values;
  }

  test::temp_folder folder_;
};

TEST_F(gguf_names, phi3_fuses_as_its_class_does) {
  expect_the_same_weights("phi3", phi3_parts, false, 0);
}

TEST_F(gguf_names, smollm3_turns_neighbours) {
  expect_the_same_weights("smollm3", smollm3_parts, true, 0);
}

TEST_F(gguf_names, glm_ernie_and_cohere_turn_neighbours_as_their_classes_do) {
  expect_the_same_weights("glm", glm_parts, false, 0);
  expect_the_same_weights("glm4", glm4_parts, false, 0);
  expect_the_same_weights("ernie", ernie_parts, true, 0);
  expect_the_same_weights("cohere", cohere_parts, true, 0);
  expect_the_same_weights("cohere2", cohere_parts, true, 0);
}

TEST_F(gguf_names, glm_has_queries_keys_and_values_in_one_tensor_or_apart) {
  expect_the_same_weights("glm", joined_glm_parts, false, 0);
}

TEST_F(gguf_names, experts_lie_in_one_tensor) {
  expect_the_same_weights("qwen3-moe", mixture_parts, false, 0);
}

TEST_F(gguf_names, olmoe_has_experts_beside_norms_over_all_heads) {
  expect_the_same_weights("olmoe", mixture_parts, false, 0);
}

TEST_F(gguf_names, qwen2moe_has_an_mlp_beside_its_experts_and_a_gate_that_is_a_vector) {
  expect_the_same_of_shared("qwen2-moe", "ffn_norm");
}

TEST_F(gguf_names, glm_has_an_mlp_beside_its_experts_and_a_layer_without_experts) {
  expect_the_same_of_shared("glm4-moe", "post_attention_norm");
}

TEST_F(gguf_names, gpt_oss_has_experts_and_their_biases_in_order) {
  expect_the_same_weights("gpt-oss", {}, false, 0);
}

TEST_F(gguf_names, seed_oss_arcee_and_exaone_have_theirs) {
  expect_the_same_weights("seed-oss", seed_parts, false, 0);
  expect_the_same_weights("arcee", arcee_parts, false, 0);
  expect_the_same_weights("exaone4", olmo2_parts, false, 0);
}

TEST_F(gguf_names, minimax_has_experts_with_biases_of_their_choice) {
  expect_the_same_of_shared("minimax-m2", "ffn_norm");
}

TEST_F(gguf_names, ernie_has_an_mlp_beside_its_experts) {
  expect_the_same_of_shared("ernie-moe", "ffn_norm");
}

TEST_F(gguf_names, granite_turns_neighbours) {
  expect_the_same_weights("granite", smollm3_parts, true, 0);
}

TEST_F(gguf_names, olmo2_has_norms_of_outputs_alone) {
  expect_the_same_weights("olmo2", olmo2_parts, false, 0);
}

TEST_F(gguf_names, gemma2_has_four_norms_with_the_one_added) {
  expect_the_same_weights("gemma2", gemma2_parts, true, 1);
}

TEST_F(gguf_names, gemma3_has_four_norms_with_the_one_added) {
  expect_the_same_weights("gemma3", gemma3_parts, true, 1);
}

}  // namespace
}  // namespace troupe
