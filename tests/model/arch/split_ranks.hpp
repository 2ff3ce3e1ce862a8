// Models, passes and threads for tests of decoders whose matrices are cut, whatever computes.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "base/to_size.hpp"
#include "bench/random/random_adapter.hpp"
#include "model/arch/decoder.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/weight_names.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/transport/collective/thread_ranks.hpp"

namespace troupe {

/// Narrow and odd on purpose: heads that begin inside a block of 16 outputs, shares that are not equal.
inline const std::map<std::string, std::string> split_shapes{
    {"llama", R"({"model_type": "llama", "hidden_size": 88, "num_attention_heads": 10, "num_key_value_heads": 5,
                  "head_dim": 24, "intermediate_size": 100, "num_hidden_layers": 2, "vocab_size": 130)"},
    {"qwen2", R"({"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 4,
                  "intermediate_size": 76, "num_hidden_layers": 2, "vocab_size": 98)"},
    {"qwen3", R"({"model_type": "qwen3", "hidden_size": 40, "num_attention_heads": 12, "num_key_value_heads": 6,
                  "head_dim": 16, "intermediate_size": 40, "num_hidden_layers": 3, "vocab_size": 40)"},
    {"phi3", R"({"model_type": "phi3", "hidden_size": 96, "num_attention_heads": 8, "num_key_value_heads": 4,
                 "partial_rotary_factor": 0.5, "intermediate_size": 76, "num_hidden_layers": 2, "vocab_size": 70)"},
    {"gemma3", R"({"model_type": "gemma3_text", "hidden_size": 88, "num_attention_heads": 8, "num_key_value_heads": 4,
                   "head_dim": 24, "intermediate_size": 100, "num_hidden_layers": 3, "vocab_size": 66,
                   "query_pre_attn_scalar": 20, "sliding_window": 9, "sliding_window_pattern": 2)"},
    {"granite", R"({"model_type": "granite", "hidden_size": 96, "num_attention_heads": 8, "num_key_value_heads": 4,
                    "intermediate_size": 100, "num_hidden_layers": 2, "vocab_size": 130, "embedding_multiplier": 3,
                    "residual_multiplier": 0.4, "attention_multiplier": 0.2, "logits_scaling": 5)"},
    {"olmo2", R"({"model_type": "olmo2", "hidden_size": 72, "num_attention_heads": 12, "num_key_value_heads": 6,
                  "intermediate_size": 100, "num_hidden_layers": 2, "vocab_size": 130)"},
    {"cohere2", R"({"model_type": "cohere2", "hidden_size": 88, "num_attention_heads": 11, "num_key_value_heads": 11,
                    "intermediate_size": 100, "num_hidden_layers": 3, "vocab_size": 66, "sliding_window": 9,
                    "sliding_window_pattern": 2, "logit_scale": 0.5)"},
    {"gemma2", R"({"model_type": "gemma2", "hidden_size": 88, "num_attention_heads": 8, "num_key_value_heads": 4,
                   "head_dim": 24, "intermediate_size": 100, "num_hidden_layers": 3, "vocab_size": 66,
                   "query_pre_attn_scalar": 20, "sliding_window": 9, "attn_logit_softcapping": 2.5,
                   "final_logit_softcapping": 1.5)"},
    {"gpt2", R"({"model_type": "gpt2", "n_embd": 96, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 97)"}};

/// Random weights as the Hugging Face format has them.
inline std::shared_ptr<const loaded_model> random_model(const std::string& family, scheme quant, bool tied = false) {
  const test::temp_folder folder;
  const std::string json = split_shapes.at(family) + R"(, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
      "hidden_act": "silu", "activation_function": "gelu_new", "tie_word_embeddings": )" +
                           (tied ? "true}" : "false}");
  folder.write("config.json", json);
  const model_config config = parse_hf_config(json, family);
  std::map<std::string, std::vector<std::int64_t>> tensors;
  for (const auto& weight : detail::wanted_weights(config)) {
    const auto at =
        detail::place_of(weight, config, family == "gpt2" ? detail::naming::gpt2 : detail::naming::hugging_face, "");
    tensors[at.name] = at.form.shape(weight, at.rows.transposed);
  }
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 0.2f);
  std::vector<tensor_description> order;
  std::vector<std::vector<float>> data;
  std::vector<std::span<const std::byte>> parts;
  for (const auto& [name, shape] : tensors) {
    order.push_back({name, dtype::f32, shape});
    auto& values = data.emplace_back(byte_size(dtype::f32, shape, name) / sizeof(float));
    for (float& value : values) value = normal(random);
  }
  for (const auto& values : data) parts.push_back(std::as_bytes(std::span(values)));
  write_safetensors(folder.path() / "model.safetensors", order, parts, {});
  return load_for_test(folder.path(), quant);
}

struct split_case {
  const char* model;
  scheme quant;
  kv_kind kv;
};

/// Sequences that advance side by side, with and without an adapter: prompts, each at its own pace, then tokens one by
/// one.
struct split_traffic {
  static constexpr int sequences = 7, blocks_each = 3;

  struct one_pass {
    std::vector<pass_sequence> rows;
    std::vector<std::int32_t> tokens;
    std::vector<int> logit_rows;
  };
  std::vector<std::vector<std::int32_t>> tables;
  std::vector<one_pass> passes;
  const lora_adapter* adapter;

  /// `length`: tokens of each sequence; 48 at most.
  split_traffic(std::int64_t vocab, const lora_adapter* with, int length) : tables(sequences), adapter(with) {
    for (int s = 0; s < sequences; ++s)
      for (int b = 0; b < blocks_each; ++b) tables[to_size(s)].push_back(b * sequences + s);
    std::mt19937 random(3);
    std::vector<int> done(sequences, 0);
    const int prompt = length - 3;
    while (std::accumulate(done.begin(), done.end(), 0) < sequences * prompt)
      add_pass(vocab, random, done, prompt, [&] { return static_cast<int>(random() % 9); });
    for (int end = prompt + 1; end <= length; ++end) add_pass(vocab, random, done, end, [] { return 1; });
  }

  /// No sequence gets beyond `end`.
  template <class Count>
  void add_pass(std::int64_t vocab, std::mt19937& random, std::vector<int>& done, int end, Count most_rows) {
    one_pass& next = passes.emplace_back();
    for (int s = 0; s < sequences; ++s) {
      int& at = done[to_size(s)];
      const int count = std::min(end - at, most_rows());
      if (count == 0) continue;
      next.rows.push_back(
          {static_cast<int>(next.tokens.size()), count, at, tables[to_size(s)].data(), s % 3 == 1 ? adapter : nullptr});
      for (int i = 0; i < count; ++i)
        next.tokens.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab)));
      next.logit_rows.push_back(static_cast<int>(next.tokens.size()) - 1);
      at += count;
    }
  }
};

/// Hidden states of all rows and logits of some, of all passes.
struct split_results {
  std::vector<float> hidden, logits;

  friend bool operator==(const split_results& a, const split_results& b) {
    const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
      return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
    };
    return same(a.hidden, b.hidden) && same(a.logits, b.logits);
  }
};

/// What a decoder, or a rank of several, makes of all passes; with chosen.layers several decoders do, of so many layers
/// each.
inline split_results results_of(const std::shared_ptr<const loaded_model>& model, const split_traffic& all,
                                decoder::options chosen) {
  thread_pool pool(1);
  chosen.max_rows = 128;
  chosen.blocks = split_traffic::sequences * split_traffic::blocks_each;
  const std::int64_t layers = model->config.layers, each_has = chosen.layers < 0 ? layers : chosen.layers;
  std::vector<std::unique_ptr<decoder>> shards;
  for (; chosen.first_layer < layers; chosen.first_layer += each_has) {
    chosen.layers = std::min(each_has, layers - chosen.first_layer);
    shards.push_back(make_decoder(model, chosen, {pool, kernels()}));
    if (all.adapter) shards.back()->add_adapter(*all.adapter);
  }
  const auto hidden_stride = to_size(shards.back()->hidden_stride()),
             logit_stride = to_size(shards.back()->logit_stride());
  split_results made;
  for (const split_traffic::one_pass& each : all.passes) {
    const pass batch{each.rows, static_cast<int>(each.tokens.size())};
    aligned_buffer<float> hidden((each.tokens.size() + 1) * hidden_stride);
    shards.front()->embed(batch, each.tokens, hidden.data());
    for (const auto& shard : shards) shard->run(batch, hidden.data());
    const float* logits = shards.back()->logits(hidden.data(), {each.logit_rows});
    made.hidden.insert(made.hidden.end(), hidden.data(), hidden.data() + hidden.size());
    made.logits.insert(made.logits.end(), logits, logits + each.logit_rows.size() * logit_stride);
  }
  return made;
}

/// Each of `size` ranks on a thread of its own.
inline void expect_the_same_of_ranks(int size, const std::shared_ptr<const loaded_model>& model,
                                     const split_traffic& all, const decoder::options& chosen,
                                     const split_results& expected) {
  const auto ranks = test::make_thread_ranks(size, std::chrono::seconds(60));
  std::vector<split_results> made(ranks.size());
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      collective& own = *ranks[to_size(rank)];
      decoder::options part = chosen;
      part.split = {rank, size, [&own](std::span<float> data, std::span<const std::size_t> ends, int root) {
                      std::vector<std::size_t> bytes;
                      for (const std::size_t end : ends) bytes.push_back(end * sizeof(float));
                      const auto parts = std::as_writable_bytes(data);
                      if (root == tensor_split::everyone)
                        own.all_gather(parts, bytes);
                      else
                        own.gather(parts, bytes, root);
                    }};
      part.split.on_device = chosen.split.on_device;
      made[to_size(rank)] = results_of(model, all, part);
    });
  for (std::thread& each : threads) each.join();
  EXPECT_TRUE(made.front() == expected) << size << " ranks";
  for (const split_results& each : made) EXPECT_EQ(each.hidden, expected.hidden) << size << " ranks";
}

}  // namespace troupe
