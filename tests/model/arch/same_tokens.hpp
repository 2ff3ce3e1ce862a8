// Promise 1 inside the library: what a row becomes depends on its own sequence alone, to the last bit. The same tests
// for all devices.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "base/to_size.hpp"
#include "model/arch/gpu.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe {

struct same_tokens_case {
  const char* model;
  scheme quant;
  kv_kind kv;
  device_id device = {};
  int tokens = 100;
};

class same_tokens : public testing::TestWithParam<same_tokens_case> {
 protected:
  void SetUp() override {
    const int gpu = GetParam().device.gpu;
    if (gpu >= 0 && !gpu_fault(gpu).empty()) GTEST_SKIP() << gpu_fault(gpu);
    expected_ = logits_of(model_, tokens_, plain_);
  }

  void expect_the_same_in_chunks_of(const std::vector<int>& sizes) {
    for (const int chunk : sizes) {
      run_options options = plain_;
      options.chunk = chunk;
      EXPECT_TRUE(same_bits(logits_of(model_, tokens_, options), expected_)) << "chunks of " << chunk;
    }
  }

  /// Several sequences are computed together, chunk by chunk, each at its own pace, with and without adapters.
  void expect_the_same_in_company() {
    const lora_adapter adapter(read_adapter(golden / GetParam().model / "adapter", model_->config),
                               model_->config.layers);
    const int sequences = 7, length = static_cast<int>(tokens_.size()) * 3 / 5, blocks_each = length / 16 + 1;
    thread_pool pool(2);
    const auto shard = make_decoder(model_,
                                    {.max_rows = 256,
                                     .kv = GetParam().kv,
                                     .blocks = sequences * blocks_each,
                                     .states = sequences,
                                     .device = GetParam().device},
                                    {pool, kernels()});
    shard->add_adapter(adapter);

    std::vector<std::vector<std::int32_t>> tokens, tables;
    std::vector<std::vector<float>> got(to_size(sequences));
    for (int s = 0; s < sequences; ++s) {
      tokens.push_back(random_tokens(length, model_->config.vocab_size, 100 + static_cast<unsigned>(s)));
      tables.emplace_back(to_size(blocks_each));
      // blocks of different sequences alternate
      for (int b = 0; b < blocks_each; ++b) tables.back()[to_size(b)] = b * sequences + (s * 3) % sequences;
    }
    const auto adapter_of = [&](int s) { return s % 3 == 1 ? &adapter : nullptr; };
    std::vector<int> done(to_size(sequences), 0);
    std::mt19937 random(7);
    while (std::accumulate(done.begin(), done.end(), 0) < sequences * length) {
      std::vector<pass_sequence> rows;
      std::vector<std::int32_t> inputs;
      std::vector<int> who;
      for (int s = 0; s < sequences; ++s) {
        const int count = std::min(length - done[to_size(s)], static_cast<int>(random() % 20));
        if (count == 0) continue;
        const auto first = tokens[to_size(s)].begin() + done[to_size(s)];
        rows.push_back({static_cast<int>(inputs.size()), count, done[to_size(s)], tables[to_size(s)].data(),
                        adapter_of(s), (s * 5) % sequences});
        inputs.insert(inputs.end(), first, first + count);
        who.push_back(s);
        done[to_size(s)] += count;
      }
      const int total = static_cast<int>(inputs.size());
      aligned_buffer<float> hidden(to_size((total + 1) * shard->hidden_stride()));
      const pass batch{rows, total};
      shard->embed(batch, inputs, hidden.data());
      shard->run(batch, hidden.data());
      std::vector<int> all(to_size(total));
      std::iota(all.begin(), all.end(), 0);
      const float* logits = shard->logits(hidden.data(), {all});
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (int row = rows[i].first_row; row < rows[i].first_row + rows[i].rows; ++row) {
          const float* values = logits + row * shard->logit_stride();
          auto& to = got[to_size(who[i])];
          to.insert(to.end(), values, values + model_->config.vocab_size);
        }
    }
    for (int s = 0; s < sequences; ++s) {
      run_options alone = plain_;
      alone.adapter = adapter_of(s);
      EXPECT_TRUE(same_bits(got[to_size(s)], logits_of(model_, tokens[to_size(s)], alone))) << "sequence " << s;
    }
  }

  /// A pipeline of shards computes the same as a whole model.
  void expect_the_same_from_two_shards() {
    thread_pool pool(2);
    const compute with{pool, kernels()};
    const std::int64_t layers = model_->config.layers, blocks = 7;
    const auto shard = [&](std::int64_t first_layer, std::int64_t count) {
      return make_decoder(model_,
                          {.first_layer = first_layer,
                           .layers = count,
                           .max_rows = 128,
                           .kv = GetParam().kv,
                           .blocks = blocks,
                           .device = GetParam().device},
                          with);
    };
    const auto first = shard(0, 1), second = shard(1, layers - 1);
    std::vector<std::int32_t> table(to_size(blocks));
    std::iota(table.begin(), table.end(), 0);
    const int count = static_cast<int>(tokens_.size());
    const pass_sequence sequence{0, count, 0, table.data(), nullptr};
    const pass batch{std::span(&sequence, 1), count};
    aligned_buffer<float> hidden(to_size(count * first->hidden_stride()));
    first->embed(batch, tokens_, hidden.data());
    first->run(batch, hidden.data());
    second->run(batch, hidden.data());
    const int last = count - 1;
    const float* logits = second->logits(hidden.data(), {std::span(&last, 1)});
    const auto vocab = to_size(model_->config.vocab_size);
    EXPECT_EQ(std::memcmp(logits, expected_.data() + to_size(last) * vocab, vocab * sizeof(float)), 0);
  }

  std::shared_ptr<const loaded_model> model_ = load_for_test(golden / GetParam().model, GetParam().quant);
  std::vector<std::int32_t> tokens_ = random_tokens(GetParam().tokens, model_->config.vocab_size, 1);
  run_options plain_{.kv = GetParam().kv, .device = GetParam().device};
  std::vector<float> expected_;
};

}  // namespace troupe
