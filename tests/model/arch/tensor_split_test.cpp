// Promise 1 over ranks: what several decoders with parts of every matrix make together is what one makes, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "bench/random_adapter.hpp"
#include "model/arch/cpu_decoder.hpp"
#include "model/formats/weight_names.hpp"
#include "tests/model/arch/models.hpp"
#include "transport/collective/threads.hpp"

namespace troupe {
namespace {

/// Narrow and odd on purpose: heads that begin inside a block of 16 outputs, shares that are not equal.
const std::map<std::string, std::string> shapes{
    {"llama", R"({"model_type": "llama", "hidden_size": 88, "num_attention_heads": 10, "num_key_value_heads": 5,
                  "head_dim": 24, "intermediate_size": 100, "num_hidden_layers": 2, "vocab_size": 130)"},
    {"qwen2", R"({"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 8, "num_key_value_heads": 4,
                  "intermediate_size": 76, "num_hidden_layers": 2, "vocab_size": 98)"},
    {"qwen3", R"({"model_type": "qwen3", "hidden_size": 40, "num_attention_heads": 12, "num_key_value_heads": 6,
                  "head_dim": 16, "intermediate_size": 40, "num_hidden_layers": 3, "vocab_size": 40)"},
    {"gpt2", R"({"model_type": "gpt2", "n_embd": 96, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 97)"}};

/// Random weights as the Hugging Face format has them.
std::shared_ptr<const loaded_model> random_model(const std::string& family, scheme quant) {
  const test::temp_folder folder;
  const std::string json = shapes.at(family) + R"(, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
      "tie_word_embeddings": false, "hidden_act": "silu", "activation_function": "gelu_new"})";
  folder.write("config.json", json);
  const model_config config = parse_hf_config(json, family);
  std::map<std::string, std::vector<std::int64_t>> tensors;
  for (const auto& weight : detail::wanted_weights(config)) {
    const auto at =
        detail::place_of(weight, config, family == "gpt2" ? detail::naming::gpt2 : detail::naming::hugging_face, "");
    if (weight.vector)
      tensors[at.name] =
          weight.outs > 1 ? std::vector{weight.outs, weight.ins} : std::vector{std::max(at.all_outs, weight.ins)};
    else
      tensors[at.name] = at.transposed ? std::vector{weight.ins, at.all_outs} : std::vector{at.all_outs, weight.ins};
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

struct wanted {
  const char* model;
  scheme quant;
  kv_kind kv;
};

/// Sequences that advance side by side, each at its own pace, with and without an adapter.
struct traffic {
  static constexpr int sequences = 7, length = 40, blocks_each = 3;

  struct one_pass {
    std::vector<pass_sequence> rows;
    std::vector<std::int32_t> tokens;
    std::vector<int> logit_rows;
  };
  std::vector<std::vector<std::int32_t>> tables;
  std::vector<one_pass> passes;

  traffic(std::int64_t vocab, const lora_adapter* adapter) : tables(sequences) {
    std::mt19937 random(3);
    for (int s = 0; s < sequences; ++s)
      for (int b = 0; b < blocks_each; ++b) tables[static_cast<std::size_t>(s)].push_back(b * sequences + s);
    for (std::vector<int> done(sequences, 0); std::accumulate(done.begin(), done.end(), 0) < sequences * length;) {
      one_pass& next = passes.emplace_back();
      for (int s = 0; s < sequences; ++s) {
        int& at = done[static_cast<std::size_t>(s)];
        const int count = std::min(length - at, static_cast<int>(random() % 9));
        if (count == 0) continue;
        next.rows.push_back({static_cast<int>(next.tokens.size()), count, at,
                             tables[static_cast<std::size_t>(s)].data(), s % 3 == 1 ? adapter : nullptr});
        for (int i = 0; i < count; ++i)
          next.tokens.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab)));
        next.logit_rows.push_back(static_cast<int>(next.tokens.size()) - 1);
        at += count;
      }
    }
  }
};

/// Hidden states of all rows and logits of some, of all passes.
struct results {
  std::vector<float> hidden, logits;

  friend bool operator==(const results& a, const results& b) {
    const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
      return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
    };
    return same(a.hidden, b.hidden) && same(a.logits, b.logits);
  }
};

results run(const std::shared_ptr<const loaded_model>& model, const traffic& all, kv_kind kv, tensor_split split) {
  thread_pool pool(1);
  cpu_decoder shard(
      model,
      {.max_rows = 128, .kv = kv, .blocks = traffic::sequences * traffic::blocks_each, .split = std::move(split)},
      {pool, kernels()});
  results made;
  for (const traffic::one_pass& each : all.passes) {
    const pass batch{each.rows, static_cast<int>(each.tokens.size())};
    aligned_buffer<float> hidden((each.tokens.size() + 1) * static_cast<std::size_t>(shard.hidden_stride()));
    shard.embed(batch, each.tokens, hidden.data());
    shard.run(batch, hidden.data());
    const float* logits = shard.logits(hidden.data(), {each.logit_rows});
    made.hidden.insert(made.hidden.end(), hidden.data(), hidden.data() + hidden.size());
    made.logits.insert(made.logits.end(), logits,
                       logits + each.logit_rows.size() * static_cast<std::size_t>(shard.logit_stride()));
  }
  return made;
}

class tensor_splits : public testing::TestWithParam<wanted> {};

TEST_P(tensor_splits, give_what_the_whole_gives) {
  const auto model = random_model(GetParam().model, GetParam().quant);
  const auto adapter = bench::random_adapter(*model, 5, 2);
  const traffic all(model->config.vocab_size, adapter.get());
  const results expected = run(model, all, GetParam().kv, {});
  for (int size = 2; size <= 4; ++size) {
    const auto ranks = make_thread_ranks(size, std::chrono::seconds(60));
    std::vector<results> made(ranks.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        collective& own = *ranks[static_cast<std::size_t>(rank)];
        const auto gather = [&own](std::span<float> data, std::span<const std::size_t> ends, int root) {
          std::vector<std::size_t> bytes;
          for (const std::size_t end : ends) bytes.push_back(end * sizeof(float));
          const auto parts = std::as_writable_bytes(data);
          if (root == tensor_split::everyone)
            own.all_gather(parts, bytes);
          else
            own.gather(parts, bytes, root);
        };
        made[static_cast<std::size_t>(rank)] = run(model, all, GetParam().kv, {rank, size, gather});
      });
    for (std::thread& each : threads) each.join();
    EXPECT_TRUE(made.front() == expected) << size << " ranks";
    for (const results& each : made) EXPECT_EQ(each.hidden, expected.hidden) << size << " ranks";
  }
}

INSTANTIATE_TEST_SUITE_P(
    schemes, tensor_splits,
    testing::Values(wanted{"llama", scheme::f32, kv_kind::f32}, wanted{"llama", scheme::bf16, kv_kind::f16},
                    wanted{"llama", scheme::u8, kv_kind::f16}, wanted{"llama", scheme::q4, kv_kind::f16},
                    wanted{"gpt2", scheme::u8, kv_kind::f16}, wanted{"gpt2", scheme::f32, kv_kind::f16},
                    wanted{"gpt2", scheme::q8, kv_kind::i8}, wanted{"gpt2", scheme::q4, kv_kind::f16},
                    wanted{"qwen2", scheme::u8, kv_kind::i8}, wanted{"qwen2", scheme::f32, kv_kind::f32},
                    wanted{"qwen3", scheme::q8, kv_kind::f16}, wanted{"qwen3", scheme::u8g64, kv_kind::f16}),
    [](const auto& info) { return std::string(info.param.model) + "_" + std::string(name_of(info.param.quant)); });

TEST(tensor_split, columns_are_shared_out_whole_and_evenly) {
  for (int ranks = 1; ranks <= 5; ++ranks)
    for (std::int64_t units = 0; units < 12; ++units) {
      std::int64_t at = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const column_cut cut = cut_columns({rank, ranks, {}}, units, 16);
        EXPECT_EQ(cut.first, at);
        EXPECT_EQ(cut.count() % 16, 0);
        EXPECT_LE(cut.count() / 16, units / ranks + 1);
        EXPECT_GE(cut.count() / 16, units / ranks);
        at = cut.last;
      }
      EXPECT_EQ(at, units * 16);
    }
}

TEST(tensor_split, more_ranks_than_heads_are_refused) {
  model_config config;
  config.kv_heads = 2;
  const auto nothing = [](std::span<float>, std::span<const std::size_t>, int) {};
  EXPECT_NO_THROW(check(tensor_split{1, 2, nothing}, config));
  EXPECT_THROW(check(tensor_split{1, 3, nothing}, config), input_error);
  EXPECT_THROW(check(tensor_split{2, 2, nothing}, config), input_error);
  EXPECT_THROW(check(tensor_split{1, 2, {}}, config), input_error);
}

}  // namespace
}  // namespace troupe
