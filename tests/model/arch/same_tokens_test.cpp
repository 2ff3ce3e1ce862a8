// Promise 1 inside the library: what a row becomes depends on its own sequence alone, to the last bit.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "model/arch/cpu_decoder.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {
namespace {

const std::filesystem::path golden = std::filesystem::path(TROUPE_FIXTURES) / "golden";

std::vector<std::int32_t> random_tokens(int count, std::int64_t vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab));
  return tokens;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct wanted {
  const char* model;
  scheme quant;
  kv_kind kv;
};

class same_tokens : public testing::TestWithParam<wanted> {
 protected:
  std::shared_ptr<const loaded_model> model_ = load_for_test(golden / GetParam().model, GetParam().quant);
  std::vector<std::int32_t> tokens_ = random_tokens(100, model_->config.vocab_size, 1);
  run_options plain_{.kv = GetParam().kv};
  std::vector<float> expected_ = logits_of(model_, tokens_, plain_);
};

TEST_P(same_tokens, whatever_the_chunking) {
  for (const int chunk : {1, 7, 64}) {
    run_options options = plain_;
    options.chunk = chunk;
    EXPECT_TRUE(same_bits(logits_of(model_, tokens_, options), expected_)) << "chunks of " << chunk;
  }
}

TEST_P(same_tokens, whatever_the_number_of_threads) {
  for (const int threads : {1, 3, 4}) {
    run_options options = plain_;
    options.threads = threads;
    EXPECT_TRUE(same_bits(logits_of(model_, tokens_, options), expected_)) << threads << " threads";
  }
}

TEST_P(same_tokens, whatever_the_instruction_set) {
  for (const char* isa : {"generic", "avx2", "avx512"}) {
    run_options options = plain_;
    options.table = kernels_of(isa);
    if (!options.table) continue;  // this processor cannot be asked
    EXPECT_TRUE(same_bits(logits_of(model_, tokens_, options), expected_)) << isa;
  }
}

/// Several sequences advance side by side, chunk by chunk, each at a pace of its own, with and without adapters.
TEST_P(same_tokens, whoever_else_is_in_the_pass) {
  const lora_adapter adapter(read_adapter(golden / GetParam().model / "adapter", model_->config),
                             model_->config.layers);
  constexpr int sequences = 9, length = 60, blocks_each = length / 16 + 1;
  thread_pool pool(2);
  cpu_decoder shard(model_, {.max_rows = 256, .kv = GetParam().kv, .blocks = sequences * blocks_each},
                    {pool, kernels()});

  std::vector<std::vector<std::int32_t>> tokens, tables;
  std::vector<std::vector<float>> got(sequences);
  for (int s = 0; s < sequences; ++s) {
    tokens.push_back(random_tokens(length, model_->config.vocab_size, 100 + static_cast<unsigned>(s)));
    tables.emplace_back(blocks_each);
    // blocks of different sequences lie mixed
    for (int b = 0; b < blocks_each; ++b)
      tables.back()[static_cast<std::size_t>(b)] = b * sequences + (s * 4) % sequences;
  }
  const auto adapter_of = [&](int s) { return s % 3 == 1 ? &adapter : nullptr; };
  std::vector<int> done(sequences, 0);
  std::mt19937 random(7);
  while (std::accumulate(done.begin(), done.end(), 0) < sequences * length) {
    std::vector<pass_sequence> rows;
    std::vector<std::int32_t> inputs;
    std::vector<int> who;
    for (int s = 0; s < sequences; ++s) {
      const int count = std::min(length - done[static_cast<std::size_t>(s)], static_cast<int>(random() % 20));
      if (count == 0) continue;
      const auto first = tokens[static_cast<std::size_t>(s)].begin() + done[static_cast<std::size_t>(s)];
      rows.push_back({static_cast<int>(inputs.size()), count, done[static_cast<std::size_t>(s)],
                      tables[static_cast<std::size_t>(s)].data(), adapter_of(s)});
      inputs.insert(inputs.end(), first, first + count);
      who.push_back(s);
      done[static_cast<std::size_t>(s)] += count;
    }
    const int total = static_cast<int>(inputs.size());
    aligned_buffer<float> hidden(static_cast<std::size_t>((total + 1) * shard.hidden_stride()));
    aligned_buffer<float> logits(static_cast<std::size_t>((total + 1) * shard.logit_stride()));
    const pass batch{rows, total};
    shard.embed(batch, inputs, hidden.data());
    shard.run(batch, hidden.data());
    std::vector<int> all(static_cast<std::size_t>(total));
    std::iota(all.begin(), all.end(), 0);
    shard.logits(hidden.data(), all, logits.data());
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (int row = rows[i].first_row; row < rows[i].first_row + rows[i].rows; ++row) {
        const float* values = logits.data() + row * shard.logit_stride();
        auto& to = got[static_cast<std::size_t>(who[i])];
        to.insert(to.end(), values, values + model_->config.vocab_size);
      }
  }
  for (int s = 0; s < sequences; ++s) {
    run_options alone = plain_;
    alone.adapter = adapter_of(s);
    EXPECT_TRUE(
        same_bits(got[static_cast<std::size_t>(s)], logits_of(model_, tokens[static_cast<std::size_t>(s)], alone)))
        << "sequence " << s;
  }
}

/// A pipeline of shards computes what one does.
TEST_P(same_tokens, however_the_layers_are_split) {
  thread_pool pool(2);
  const compute with{pool, kernels()};
  const std::int64_t layers = model_->config.layers, blocks = 7;
  cpu_decoder first(model_, {.layers = 1, .max_rows = 128, .kv = GetParam().kv, .blocks = blocks}, with);
  cpu_decoder second(
      model_, {.first_layer = 1, .layers = layers - 1, .max_rows = 128, .kv = GetParam().kv, .blocks = blocks}, with);
  std::vector<std::int32_t> table(static_cast<std::size_t>(blocks));
  std::iota(table.begin(), table.end(), 0);
  const int count = static_cast<int>(tokens_.size());
  const pass_sequence sequence{0, count, 0, table.data(), nullptr};
  const pass batch{std::span(&sequence, 1), count};
  aligned_buffer<float> hidden(static_cast<std::size_t>(count * first.hidden_stride()));
  aligned_buffer<float> logits(static_cast<std::size_t>(first.logit_stride()));
  first.embed(batch, tokens_, hidden.data());
  first.run(batch, hidden.data());
  second.run(batch, hidden.data());
  const int last = count - 1;
  second.logits(hidden.data(), std::span(&last, 1), logits.data());
  const auto vocab = static_cast<std::size_t>(model_->config.vocab_size);
  EXPECT_EQ(
      std::memcmp(logits.data(), expected_.data() + static_cast<std::size_t>(last) * vocab, vocab * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(
    schemes, same_tokens,
    testing::Values(wanted{"llama", scheme::f32, kv_kind::f32}, wanted{"llama", scheme::bf16, kv_kind::f16},
                    wanted{"llama", scheme::u8, kv_kind::f16}, wanted{"gpt2", scheme::u8g64, kv_kind::f16},
                    wanted{"qwen3", scheme::q8, kv_kind::f16}, wanted{"llama", scheme::q4, kv_kind::f16},
                    wanted{"mistral", scheme::u8, kv_kind::f32}, wanted{"qwen2", scheme::u8, kv_kind::i8},
                    wanted{"gpt2", scheme::q8, kv_kind::i8}),
    [](const auto& info) { return std::string(info.param.model) + "_" + std::string(name_of(info.param.quant)); });

}  // namespace
}  // namespace troupe
