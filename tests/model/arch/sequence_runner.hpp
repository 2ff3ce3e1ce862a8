// Runs one sequence through a decoder the plain way: all blocks its own, one pass after another.
#pragma once
#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <vector>

#include "base/thread_pool.hpp"
#include "model/arch/decoder.hpp"
#include "model/ops/isa.hpp"

namespace troupe {

inline std::shared_ptr<const loaded_model> load_for_test(const std::filesystem::path& path, std::optional<scheme> quant) {
  thread_pool pool(2);
  load_options options;
  options.quant = quant;
  options.cache = std::filesystem::temp_directory_path() / "troupe-test-cache";
  return load_model(path, options, pool);
}

struct runner_options {
  const lora_adapter* adapter = nullptr;
  int chunk = 512;
  int threads = 2;
  const kernel_table* table = &kernels();
  kv_kind kv = kv_kind::f32;
};

class sequence_runner {
 public:
  sequence_runner(std::shared_ptr<const loaded_model> model, const runner_options& options)
      : options_(options),
        pool_(options.threads),
        decoder_(model, {.max_rows = 512, .kv = options.kv, .blocks = model->config.context / 16 + 1}, options.threads),
        blocks_(static_cast<std::size_t>(model->config.context / 16 + 1)) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
  }

  /// Logits of every token, [tokens, vocab], fed in chunks.
  std::vector<float> logits_of(const std::vector<std::int32_t>& tokens) {
    std::vector<float> all;
    for (std::size_t at = 0; at < tokens.size();) {
      const std::size_t n = std::min(tokens.size() - at, static_cast<std::size_t>(options_.chunk));
      const auto part = pass_of(std::span(tokens).subspan(at, n));
      all.insert(all.end(), part.begin(), part.end());
      at += n;
    }
    return all;
  }

  std::vector<std::int32_t> greedy(const std::vector<std::int32_t>& prompt, int steps) {
    std::vector<float> logits = logits_of(prompt);
    const auto vocab = static_cast<std::ptrdiff_t>(decoder_.model().config.vocab_size);
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < steps; ++i) {
      const auto last = logits.end() - vocab;
      tokens.push_back(static_cast<std::int32_t>(std::max_element(last, logits.end()) - last));
      if (i + 1 < steps) logits = logits_of({tokens.back()});
    }
    return tokens;
  }

 private:
  std::vector<float> pass_of(std::span<const std::int32_t> tokens) {
    const int n = static_cast<int>(tokens.size());
    const pass_sequence sequence{0, n, position_, blocks_.data(), options_.adapter};
    const pass batch{std::span(&sequence, 1), n};
    aligned_buffer<float> hidden(static_cast<std::size_t>(n * decoder_.hidden_stride()));
    aligned_buffer<float> out(static_cast<std::size_t>(n * decoder_.logit_stride()));
    const compute with{pool_, *options_.table};
    decoder_.embed(batch, tokens, hidden.data());
    decoder_.run(with, batch, hidden.data());
    std::vector<int> rows(tokens.size());
    std::iota(rows.begin(), rows.end(), 0);
    decoder_.logits(with, hidden.data(), rows, out.data());
    position_ += n;
    std::vector<float> logits;
    for (int i = 0; i < n; ++i) {
      const float* row = out.data() + i * decoder_.logit_stride();
      logits.insert(logits.end(), row, row + decoder_.model().config.vocab_size);
    }
    return logits;
  }

  runner_options options_;
  thread_pool pool_;
  decoder decoder_;
  std::vector<std::int32_t> blocks_;
  std::int64_t position_ = 0;
};

}  // namespace troupe
