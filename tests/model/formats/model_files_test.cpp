#include "model/formats/model_files.hpp"
#include "base/to_size.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/half.hpp"
#include "tests/base/places.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe {
namespace {

using nlohmann::json;
using test::raw;
using test::refusal;
using test::weight_writer;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using floats = std::vector<float>;

floats rows_of(const model_files& model, std::string_view name) {
  const auto& source = model.weights.find(name)->second;
  floats values(to_size(source.outs * source.ins));
  source.read_rows(0, source.outs, values.data());
  return values;
}

floats stored(const model_files& model, std::string_view name) {
  const auto* view = model.file_tensors().find(name);
  floats values(to_size(view->elements()));
  to_floats(view->type, view->data.data(), view->elements(), values.data());
  return values;
}

json llama_config() {
  return {{"model_type", "llama"},    {"hidden_size", 8},        {"num_hidden_layers", 1}, {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"intermediate_size", 12}, {"vocab_size", 10},       {"attention_bias", true}};
}

weight_writer llama_weights(const std::string& prefix = "model.") {
  weight_writer file;
  const std::string layer = prefix + "layers.0.";
  file.add(prefix + "embed_tokens.weight", {10, 8});
  for (const auto* name : {"q", "o"}) file.add(layer + "self_attn." + name + "_proj.weight", {8, 8});
  for (const auto* name : {"k", "v"}) file.add(layer + "self_attn." + name + "_proj.weight", {4, 8});
  for (const auto* name : {"q", "o"}) file.add(layer + "self_attn." + name + "_proj.bias", {8});
  for (const auto* name : {"k", "v"}) file.add(layer + "self_attn." + name + "_proj.bias", {4});
  for (const auto* name : {"gate", "up"}) file.add(layer + "mlp." + name + "_proj.weight", {12, 8});
  file.add(layer + "mlp.down_proj.weight", {8, 12});
  file.add(layer + "input_layernorm.weight", {8});
  file.add(layer + "post_attention_layernorm.weight", {8});
  file.add(prefix + "norm.weight", {8});
  file.add(prefix == "language_model.model." ? "language_model.lm_head.weight" : "lm_head.weight", {10, 8});
  return file;
}

model_files open_folder(const test::temp_folder& folder, const json& config, const weight_writer& weights) {
  folder.write("config.json", config.dump());
  weights.write(folder.path() / "model.safetensors");
  return open_model(folder.path());
}

TEST(model_files, a_folder_that_was_saved_without_a_head_has_names_without_a_prefix) {
  const test::temp_folder folder;
  auto config = llama_config();
  config["tie_word_embeddings"] = true;
  const auto model = open_folder(folder, config, llama_weights(""));
  EXPECT_EQ(model.weights.size(), 15u);
  EXPECT_EQ(rows_of(model, "model.norm.weight"), stored(model, "norm.weight"));
  EXPECT_EQ(rows_of(model, "model.layers.0.mlp.up_proj.weight"), stored(model, "layers.0.mlp.up_proj.weight"));
}

TEST(model_files, a_language_model_within_another_has_longer_names) {
  for (const std::string before : {"language_model.model.", "model.language_model."}) {
    const test::temp_folder folder;
    const auto model = open_folder(folder, llama_config(), llama_weights(before));
    EXPECT_EQ(rows_of(model, "model.norm.weight"), stored(model, before + "norm.weight"));
    EXPECT_TRUE(model.weights.contains("lm_head.weight"));
  }
}

/// [experts, rows, columns] as [experts, columns, rows].
floats turned(const floats& values, const std::vector<std::int64_t>& shape) {
  const auto experts = std::size_t(shape[0]), rows = std::size_t(shape[1]), columns = std::size_t(shape[2]);
  floats to(values.size());
  for (std::size_t expert = 0; expert < experts; ++expert)
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        to[(expert * columns + column) * rows + row] = values[(expert * rows + row) * columns + column];
  return to;
}

TEST(model_files, experts_of_qwen3_vl_lie_as_published_or_as_the_class_has_them) {
  const auto published = open_model(test::golden / "qwen3-vl-moe");
  std::vector<tensor_description> tensors;
  std::vector<floats> values;
  for (const auto& [name, tensor] : published.tensors.tensors) {
    const bool is_of_experts = name.find(".experts.") != name.npos;
    tensors.push_back({name, dtype::f32, tensor.shape});
    values.push_back(stored(published, name));
    if (!is_of_experts) continue;
    values.back() = turned(values.back(), tensor.shape);
    std::swap(tensors.back().shape[1], tensors.back().shape[2]);
  }
  const test::temp_folder folder;
  std::filesystem::copy(test::golden / "qwen3-vl-moe" / "config.json", folder.path());
  write_safetensors(folder.path() / "model.safetensors", tensors, values, {});
  const auto written = open_model(folder.path());
  ASSERT_EQ(written.weights.size(), published.weights.size());
  for (const auto& [name, source] : published.weights)
    EXPECT_EQ(rows_of(written, name), rows_of(published, name)) << name;
}

/// Each expert's own tensors, of those that have all of them.
void take_apart(const std::string& name, const std::vector<std::int64_t>& shape, const floats& all,
                std::vector<tensor_description>& tensors, std::vector<floats>& values) {
  const std::string module = name.substr(0, name.rfind('.'));
  const bool is_down = name.ends_with("down_proj");
  const std::vector<const char*> parts = is_down ? std::vector{"down"} : std::vector{"gate", "up"};
  const std::int64_t rows = shape[1] / std::ssize(parts), columns = shape[2];
  auto from = all.begin();
  for (std::int64_t expert = 0; expert < shape[0]; ++expert)
    for (const char* part : parts) {
      tensors.push_back({fmt::format("{}.{}.{}_proj.weight", module, expert, part), dtype::f32, {rows, columns}});
      values.emplace_back(from, from + rows * columns);
      from += rows * columns;
    }
}

TEST(model_files, experts_of_qwen35_are_together_or_apart_as_the_file_has_them) {
  const auto published = open_model(test::golden / "qwen3.5-moe");
  std::vector<tensor_description> tensors;
  std::vector<floats> values;
  for (const auto& [name, tensor] : published.tensors.tensors) {
    if (name.find(".experts.") != name.npos) {
      take_apart(name, tensor.shape, stored(published, name), tensors, values);
      continue;
    }
    tensors.push_back({name, dtype::f32, tensor.shape});
    values.push_back(stored(published, name));
  }
  const test::temp_folder folder;
  std::filesystem::copy(test::golden / "qwen3.5-moe" / "config.json", folder.path());
  write_safetensors(folder.path() / "model.safetensors", tensors, values, {});
  const auto apart = open_model(folder.path());
  ASSERT_GT(apart.tensors.tensors.size(), published.tensors.tensors.size());
  ASSERT_EQ(apart.weights.size(), published.weights.size());
  for (const auto& [name, source] : published.weights)
    EXPECT_EQ(rows_of(apart, name), rows_of(published, name)) << name;
}

TEST(model_files, experts_of_qwen3_vl_have_tensors_of_their_own_where_they_were_quantized) {
  const test::temp_folder folder;
  std::filesystem::copy(test::golden / "qwen3-vl-moe", folder.path(), std::filesystem::copy_options::recursive);
  auto config = json::parse(test::read_file(folder.path() / "config.json"));
  config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  folder.write("config.json", config.dump());
  EXPECT_THAT(refusal([&] { open_model(folder.path()); }), HasSubstr("layers.0.mlp.experts.0.gate_proj.weight"));
}

TEST(model_files, a_llama_folder_has_every_weight_under_its_name) {
  const test::temp_folder folder;
  auto weights = llama_weights();
  weights.add("model.layers.0.self_attn.rotary_emb.inv_freq", {1});
  const auto model = open_folder(folder, llama_config(), weights);
  EXPECT_EQ(model.weights.size(), 16u);
  EXPECT_FALSE(model.weights.contains("model.layers.0.self_attn.rotary_emb.inv_freq"));
  for (const auto& [name, source] : model.weights) {
    EXPECT_EQ(source.origin, name);
    EXPECT_EQ(rows_of(model, name), stored(model, name));
  }
  const auto& up = model.weights.at("model.layers.0.mlp.up_proj.weight");
  floats one(8);
  up.read_rows(5, 1, one.data());
  EXPECT_EQ(std::memcmp(up.raw_row(5), one.data(), 32), 0);
}

TEST(model_files, a_folder_with_further_tensors_in_a_layer_is_another_architecture) {
  const auto says_with = [](const std::string& name, const std::string& prefix = "model.") {
    const test::temp_folder folder;
    auto weights = llama_weights(prefix);
    weights.add(name, {8});
    return refusal([&] { open_folder(folder, llama_config(), weights); });
  };
  const std::string layer = "model.layers.0.";
  for (const std::string part :
       {"self_attn.q_norm.weight", "input_layernorm.bias", "mlp.gate_proj.bias", "post_feedforward_layernorm.weight",
        "mlp.experts.0.up_proj.weight", "self_attn.q_proj.lora_A.weight", "self_attn.sinks", "mlp.act_fn.scales"})
    EXPECT_THAT(says_with(layer + part),
                AllOf(HasSubstr("\"" + layer + part + "\""), HasSubstr("llama as config.json")));
  EXPECT_THAT(says_with("layers.0.layer_scale", ""), HasSubstr("layer_scale"));
  EXPECT_THAT(says_with("model.language_model.layers.0.layer_scale", "model.language_model."),
              HasSubstr("layer_scale"));
}

TEST(model_files, tensors_that_change_nothing_are_left_alone) {
  const test::temp_folder folder;
  auto weights = llama_weights();
  const std::string layer = "model.layers.0.";
  for (const std::string& name :
       {layer + "self_attn.rotary_emb.inv_freq", layer + "self_attn.k_scale", layer + "self_attn.attn.v_scale",
        layer + "self_attn.masked_bias", layer + "mlp._extra_state", std::string("model.layers.1.eh_proj.weight"),
        std::string("model.layers.1.input_layernorm.weight"), std::string("visual.layers.0.norm.bias"),
        std::string("score.weight")})
    weights.add(name, {8});
  weights.add(layer + "mlp.up_proj.bias", {12}, dtype::f16);  // of zeros
  weights.add(layer + "self_attn.bias", {1, 1, 4, 4}, dtype::u8);
  EXPECT_EQ(open_folder(folder, llama_config(), weights).weights.size(), 16u);
}

TEST(model_files, what_quantizers_keep_beside_their_codes_is_left_alone) {
  const auto opened_with = [](const std::string& name, bool is_quantized) {
    const test::temp_folder folder;
    auto config = llama_config();
    if (is_quantized) config["quantization_config"] = {{"quant_method", "fp8"}};
    auto weights = llama_weights();
    weights.add(name, {1});
    return refusal([&] { open_folder(folder, config, weights); });
  };
  const std::string scale = "model.layers.0.mlp.up_proj.activation_scale";
  EXPECT_EQ(opened_with(scale, true), "");
  EXPECT_THAT(opened_with(scale, false), HasSubstr(scale));
  EXPECT_THAT(opened_with("model.layers.0.mlp.up_proj.bias", true), HasSubstr("up_proj.bias")) << "it is not zero";
}

TEST(model_files, tied_embeddings_ignore_the_head) {
  const test::temp_folder folder;
  auto config = llama_config();
  config["tie_word_embeddings"] = true;
  EXPECT_FALSE(open_folder(folder, config, llama_weights()).weights.contains("lm_head.weight"));
  auto without = llama_weights();
  without.erase("lm_head.weight");
  EXPECT_EQ(open_folder(folder, config, without).weights.size(), 15u);
}

/// Of models that see pictures: what is said of the head in two places, and what the files have.
json seeing_config(const json& whole, const json& within) {
  json config{{"model_type", "mistral3"}, {"text_config", llama_config()}};
  config["text_config"]["model_type"] = "mistral";
  if (!whole.is_null()) config["tie_word_embeddings"] = whole;
  if (!within.is_null()) config["text_config"]["tie_word_embeddings"] = within;
  return config;
}

weight_writer seeing_weights(const std::string& prefix) {
  auto file = llama_weights(prefix);
  for (const auto* name : {"q", "k", "v", "o"}) file.erase(prefix + "layers.0.self_attn." + name + "_proj.bias");
  return file;
}

TEST(model_files, of_a_model_that_sees_pictures_the_files_decide_whether_it_has_a_head) {
  const std::vector<std::pair<json, json>> flags = {{true, true},     {false, true},   {true, false},
                                                    {nullptr, true},  {true, nullptr}, {false, nullptr},
                                                    {nullptr, false}, {false, false}};
  for (const std::string prefix : {"language_model.model.", "model.language_model."}) {
    const std::string head = prefix == "language_model.model." ? "language_model.lm_head.weight" : "lm_head.weight";
    auto without = seeing_weights(prefix);
    without.erase(head);
    for (const auto& [whole, within] : flags) {
      const test::temp_folder folder;
      const auto config = seeing_config(whole, within);
      const auto own = open_folder(folder, config, seeing_weights(prefix));
      EXPECT_FALSE(own.config.tied_embeddings) << config;
      EXPECT_EQ(rows_of(own, "lm_head.weight"), stored(own, head)) << config;
      const auto opened = [&] { EXPECT_TRUE(open_folder(folder, config, without).config.tied_embeddings) << config; };
      if (whole == true || within == true)
        opened();
      else
        EXPECT_THAT(refusal(opened), HasSubstr(head)) << config;
    }
  }
}

TEST(model_files, a_folder_quantized_here_of_a_model_that_sees_pictures_has_a_head_where_one_was_packed) {
  for (const bool has_head : {false, true}) {
    const test::temp_folder folder;
    weight_writer packed;
    packed.add("model.embed_tokens.weight", {3}, dtype::u8);
    if (has_head) packed.add("lm_head.weight", {3}, dtype::u8);
    packed.write(folder.path() / "model.safetensors", {{"troupe.layout", "1"}});
    folder.write("config.json", seeing_config(true, false).dump());
    EXPECT_EQ(open_model(folder.path()).config.tied_embeddings, !has_head);
  }
}

TEST(model_files, wrong_tensors_are_refused_by_name_and_shape) {
  const test::temp_folder folder;
  const std::string name = "model.layers.0.mlp.down_proj.weight";
  const auto says = [&](std::vector<std::int64_t> shape, dtype type) {
    auto weights = llama_weights();
    weights.erase(name);
    if (!shape.empty()) weights.add(name, std::move(shape), type);
    return refusal([&] { open_folder(folder, llama_config(), weights); });
  };
  EXPECT_THAT(says({}, dtype::f32), AllOf(HasSubstr("lacks"), HasSubstr(name), HasSubstr("[8, 12]")));
  EXPECT_THAT(says({12, 8}, dtype::f32),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("[8, 12]"), HasSubstr("[12, 8]")));
  EXPECT_THAT(says({8, 12, 1}, dtype::f32), HasSubstr("[8, 12, 1]"));
  EXPECT_THAT(says({8, 12}, dtype::u8), AllOf(HasSubstr(name), HasSubstr("U8")));
  EXPECT_EQ(says({8, 12}, dtype::bf16), "");
}

TEST(model_files, a_tensor_that_the_index_lists_and_no_shard_holds_is_missed_where_it_is_needed) {
  const test::temp_folder folder;
  auto config = llama_config();
  auto weights = llama_weights();
  weights.erase("lm_head.weight");
  weights.write(folder.path() / "m-1.safetensors");
  folder.write("model.safetensors.index.json", R"({"weight_map":{"lm_head.weight":"m-1.safetensors"}})");
  const auto opened = [&](bool tied) {
    config["tie_word_embeddings"] = tied;
    folder.write("config.json", config.dump());
    return refusal([&] { open_model(folder.path()); });
  };
  EXPECT_EQ(opened(true), "");
  EXPECT_THAT(opened(false), HasSubstr("lacks the tensor \"lm_head.weight\""));
}

TEST(model_files, a_needed_tensor_of_an_unread_type_is_named_with_it) {
  const test::temp_folder folder;
  folder.write("config.json", llama_config().dump());
  const std::string header =
      R"({"model.embed_tokens.weight":{"dtype":"F8_E4M3","shape":[10,8],"data_offsets":[0,80]}})";
  folder.write("model.safetensors", raw<std::uint64_t>(header.size()) + header + std::string(80, 'x'));
  EXPECT_THAT(refusal([&] { open_model(folder.path()); }), AllOf(HasSubstr("embed_tokens"), HasSubstr("F8_E4M3")));
}

weight_writer gpt2_weights(const std::string& prefix) {
  weight_writer file;
  const auto layer = prefix + "h.0.";
  file.add(prefix + "wte.weight", {10, 4});
  file.add(prefix + "wpe.weight", {6, 4});
  for (const auto* norm : {"ln_1", "ln_2"})
    for (const auto* kind : {".weight", ".bias"}) file.add(layer + norm + kind, {4});
  file.add(layer + "attn.c_attn.weight", {4, 12});
  file.add(layer + "attn.c_attn.bias", {12});
  file.add(layer + "attn.c_proj.weight", {4, 4});
  file.add(layer + "attn.c_proj.bias", {4});
  file.add(layer + "mlp.c_fc.weight", {4, 16});
  file.add(layer + "mlp.c_fc.bias", {16});
  file.add(layer + "mlp.c_proj.weight", {16, 4});
  file.add(layer + "mlp.c_proj.bias", {4});
  file.add(prefix + "ln_f.weight", {4});
  file.add(prefix + "ln_f.bias", {4});
  file.add(layer + "attn.bias", {1, 1, 6, 6}, dtype::u8);
  file.add(layer + "attn.masked_bias", {});
  return file;
}

const json gpt2_config = {{"model_type", "gpt2"}, {"n_embd", 4},      {"n_layer", 1},
                          {"n_head", 2},          {"vocab_size", 10}, {"n_positions", 6}};

/// Columns [first, first + count) of a [rows, width] matrix, as rows.
floats columns(const floats& matrix, std::size_t width, std::size_t first, std::size_t count) {
  floats turned;
  for (std::size_t c = first; c < first + count; ++c)
    for (std::size_t r = 0; r < matrix.size() / width; ++r) turned.push_back(matrix[r * width + c]);
  return turned;
}

TEST(model_files, gpt2_splits_and_turns_its_matrices) {
  for (const std::string prefix : {"", "transformer."}) {
    const test::temp_folder folder;
    const auto model = open_folder(folder, gpt2_config, gpt2_weights(prefix));
    EXPECT_EQ(model.weights.size(), 20u);
    const auto fused = stored(model, prefix + "h.0.attn.c_attn.weight");
    const auto bias = stored(model, prefix + "h.0.attn.c_attn.bias");
    const std::string ours = "model.layers.0.self_attn.";
    for (std::size_t third = 0; third < 3; ++third) {
      const auto name = ours + "qkv"[third] + "_proj";
      EXPECT_EQ(rows_of(model, name + ".weight"), columns(fused, 12, 4 * third, 4));
      EXPECT_EQ(rows_of(model, name + ".bias"),
                floats(bias.begin() + 4 * static_cast<int>(third), bias.begin() + 4 * static_cast<int>(third) + 4));
    }
    EXPECT_EQ(rows_of(model, "model.layers.0.mlp.down_proj.weight"),
              columns(stored(model, prefix + "h.0.mlp.c_proj.weight"), 4, 0, 4));
    EXPECT_EQ(rows_of(model, "model.embed_positions.weight"), stored(model, prefix + "wpe.weight"));
  }
}

TEST(model_files, any_rows_of_a_large_turned_matrix_can_be_read) {
  std::vector<float> data(70 * 600);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i);
  weight_source source;
  source.tensor = {dtype::f32, {70, 600}, std::as_bytes(std::span(data))};
  source.outs = 500, source.ins = 70, source.rows.first_out = 90, source.rows.transposed = true;
  floats got(300 * 70);
  source.read_rows(150, 300, got.data());
  for (std::size_t row = 0; row < 300; ++row)
    for (std::size_t i = 0; i < 70; ++i) ASSERT_EQ(got[row * 70 + i], data[i * 600 + 90 + 150 + row]);
}

// ---- GGUF ----

struct gguf_head {
  test::gguf_builder file;
  explicit gguf_head(const std::string& arch) {
    const auto key = [&](const std::string& name) { return arch + "." + name; };
    file.string("general.architecture", arch).u32(key("block_count"), 1).u32(key("embedding_length"), 32);
    file.u32(key("feed_forward_length"), 64).u32(key("attention.head_count"), 4).u32(key("context_length"), 6);
  }
};

test::gguf_builder llama_gguf() {
  gguf_head model("llama");
  auto& file = model.file;
  file.u32("llama.attention.head_count_kv", 2).f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  file.floats("token_embd.weight", {32, 10}).floats("output_norm.weight", {32});
  file.floats("blk.0.attn_norm.weight", {32}).floats("blk.0.ffn_norm.weight", {32});
  file.floats("blk.0.attn_q.weight", {32, 32}).floats("blk.0.attn_q.bias", {32});
  file.floats("blk.0.attn_k.weight", {32, 16}).floats("blk.0.attn_k.bias", {16});
  file.floats("blk.0.attn_v.weight", {32, 16}).floats("blk.0.attn_v.bias", {16});
  file.floats("blk.0.ffn_gate.weight", {32, 64}).floats("blk.0.ffn_up.weight", {32, 64});
  std::string blocks;
  for (int row = 0; row < 32; ++row) {
    blocks += raw(f32_to_f16(static_cast<float>(row)));
    for (int i = 0; i < 32; ++i) blocks += raw(static_cast<std::int8_t>(i));
  }
  file.tensor("blk.0.attn_output.weight", {32, 32}, 8, blocks).floats("blk.0.ffn_down.weight", {64, 32});
  return file;
}

/// What conversion to GGUF does to the rows of a llama's q and k: the halves of each head become neighbours.
std::size_t row_in_file(std::size_t row, std::size_t head_dim) {
  const auto head = row / head_dim, half = row % head_dim / (head_dim / 2), pair = row % (head_dim / 2);
  return head * head_dim + 2 * pair + half;
}

TEST(model_files, a_llama_gguf_has_its_heads_put_in_order) {
  const test::temp_folder folder;
  const auto model = open_model(folder.write("m.gguf", llama_gguf().build()));
  EXPECT_TRUE(model.gguf && model.tensors.files.empty() && model.config.tied_embeddings);
  EXPECT_EQ(model.weights.size(), 14u);
  for (const std::string name : {"q", "k"}) {
    const auto rows = rows_of(model, "model.layers.0.self_attn." + name + "_proj.weight");
    const auto file = stored(model, "blk.0.attn_" + name + ".weight");
    const auto bias = rows_of(model, "model.layers.0.self_attn." + name + "_proj.bias");
    for (std::size_t row = 0; row < bias.size(); ++row) {
      EXPECT_EQ(bias[row], static_cast<float>(row_in_file(row, 8)));
      EXPECT_EQ(rows[row * 32 + 3], file[row_in_file(row, 8) * 32 + 3]);
    }
  }
  EXPECT_EQ(rows_of(model, "model.layers.0.self_attn.v_proj.weight"), stored(model, "blk.0.attn_v.weight"));
  const auto& out = model.weights.at("model.layers.0.self_attn.o_proj.weight");
  floats two(64);
  out.read_rows(30, 2, two.data());
  EXPECT_EQ(two[32 + 31], 31.0f * 31.0f);
  EXPECT_EQ(out.raw_row(1) - out.raw_row(0), 34);
}

TEST(model_files, a_gguf_file_is_known_by_its_first_bytes_too) {
  const test::temp_folder folder;
  for (const char* name : {"sha256-abcdef", "UP.GGUF"})
    EXPECT_TRUE(open_model(folder.write(name, llama_gguf().build())).gguf) << name;
  EXPECT_THAT(refusal([&] { open_model(folder.path()); }), HasSubstr("UP.GGUF, if you mean that"));
}

TEST(model_files, a_gpt2_gguf_has_its_fused_matrix_split) {
  gguf_head gpt2("gpt2");
  auto& file = gpt2.file;
  file.f32("gpt2.attention.layer_norm_epsilon", 1e-5f);
  file.floats("token_embd.weight", {32, 10}).floats("position_embd.weight", {32, 6}).floats("output.weight", {32, 10});
  for (const auto* norm : {"output_norm", "blk.0.attn_norm", "blk.0.ffn_norm"})
    file.floats(norm + std::string(".weight"), {32}).floats(norm + std::string(".bias"), {32});
  file.floats("blk.0.attn_qkv.weight", {32, 96}).floats("blk.0.attn_qkv.bias", {96});
  file.floats("blk.0.attn_output.weight", {32, 32}).floats("blk.0.attn_output.bias", {32});
  file.floats("blk.0.ffn_up.weight", {32, 64}).floats("blk.0.ffn_up.bias", {64});
  file.floats("blk.0.ffn_down.weight", {64, 32}).floats("blk.0.ffn_down.bias", {32});
  const test::temp_folder folder;
  const auto model = open_model(folder.write("m.gguf", file.build()));
  EXPECT_EQ(model.weights.size(), 21u);
  EXPECT_EQ(rows_of(model, "model.layers.0.self_attn.k_proj.weight").front(), 32.0f * 32.0f);
  EXPECT_EQ(rows_of(model, "model.layers.0.self_attn.v_proj.bias").back(), 95.0f);
  EXPECT_TRUE(model.weights.contains("lm_head.weight"));
}

TEST(model_files, a_gguf_without_a_tensor_is_refused_by_its_name) {
  const test::temp_folder folder;
  gguf_head model("llama");
  model.file.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f).floats("token_embd.weight", {32, 10});
  const auto path = folder.write("m.gguf", model.file.build());
  EXPECT_THAT(refusal([&] { open_model(path); }), AllOf(HasSubstr("m.gguf"), HasSubstr("blk.0.attn_norm.weight")));
}

TEST(model_files, a_gguf_with_further_tensors_in_a_layer_is_another_architecture) {
  const test::temp_folder folder;
  const auto with = [&](const char* name) {
    auto file = llama_gguf();
    file.floats(name, {32});
    return folder.write("m.gguf", file.build());
  };
  for (const char* name : {"blk.1.attn_norm.weight", "blk.0.rope_freqs.weight", "other.weight"})
    EXPECT_NO_THROW(open_model(with(name))) << name;
  const auto path = with("blk.0.attn_q_norm.weight");
  EXPECT_THAT(refusal([&] { open_model(path); }), HasSubstr("blk.0.attn_q_norm.weight"));
}

// ---- folders of ours, and things that are no model ----

TEST(model_files, a_folder_quantized_here_gives_config_and_tensors_only) {
  const test::temp_folder folder;
  weight_writer packed;
  packed.add("some.packed", {3}, dtype::u8);
  packed.write(folder.path() / "model.safetensors", {{"troupe.layout", "1"}});
  EXPECT_THAT(refusal([&] { open_model(folder.path()); }), HasSubstr("config.json"));
  gguf_file source;
  const auto bytes = llama_gguf().build();
  parse_gguf(test::bytes_of(bytes), "m.gguf", source);
  folder.write("metadata.gguf", metadata_only_gguf(source));
  const auto model = open_model(folder.path());
  EXPECT_TRUE(model.weights.empty());
  EXPECT_TRUE(model.tensors.find("some.packed"));
  EXPECT_EQ(model.config.vocab_size, 10);
  EXPECT_TRUE(model.config.tied_embeddings && model.config.qkv_bias);
}

TEST(model_files, a_folder_of_pieces_is_refused_with_the_first_of_them) {
  const test::temp_folder folder;
  for (int number = 1; number <= 20; ++number) folder.write(fmt::format("m-{:05}-of-00020.gguf", number), "");
  EXPECT_THAT(refusal([&] { open_model(folder.path()); }), HasSubstr("m-00001-of-00020.gguf, if you mean that"));
}

TEST(model_files, a_folder_with_files_beside_a_gguf_is_refused_with_the_one_that_is_a_model) {
  const test::temp_folder folder;
  const auto says = [&] { return refusal([&] { open_model(folder.path()); }); };
  for (const char* name : {"imatrix.gguf", "a-imatrix.gguf", "mmproj-a.gguf"}) folder.write(name, "");
  EXPECT_THAT(says(), HasSubstr("name a model's folder"));
  folder.write("some.gguf", "");
  EXPECT_THAT(says(), HasSubstr("some.gguf, if you mean that"));
}

TEST(model_files, what_is_no_model_is_refused) {
  const test::temp_folder folder;
  EXPECT_THAT(refusal([&] { open_model(folder.path() / "absent"); }), HasSubstr("no such model"));
  EXPECT_THAT(refusal([&] { open_model(folder.path()); }), HasSubstr("config.json"));
  EXPECT_THAT(refusal([&] { open_model(folder.write("a.txt", "hello")); }), HasSubstr(".gguf file"));
  EXPECT_THAT(refusal([&] { open_model(folder.write("a.gguf", "hello")); }), HasSubstr("too short"));
}

TEST(model_files, the_small_published_model_opens) {
  const std::filesystem::path path = test::shared_data / "models/stories260k";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is absent";
  const auto model = open_model(path);
  EXPECT_EQ(model.config.layers, 5);
  EXPECT_EQ(model.weights.size(), 47u);
  EXPECT_TRUE(model.config.tied_embeddings);
  EXPECT_THAT(model.config.eos_tokens, ElementsAre(2));
}

}  // namespace
}  // namespace troupe
