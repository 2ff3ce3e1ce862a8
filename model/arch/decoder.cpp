#include "model/arch/decoder.hpp"

#include <algorithm>
#include <array>

#include "model/ops/pack.hpp"

namespace troupe {
namespace {

constexpr int most_queries = 8;            // of an attention tile: rows x heads that share keys
constexpr int rows_per_attention_task = 32;
constexpr std::int64_t most_rank = 512;    // of an adapter
constexpr std::size_t most_products = 3;   // that share an input

std::size_t size(std::int64_t rows, std::int64_t stride) { return static_cast<std::size_t>(rows * stride); }

/// Row-wise work: not worth handing over for a few rows. Sixteen at once, so that two threads seldom write keys into
/// the same block.
template <class Task>
void for_rows(thread_pool& pool, int rows, Task task) {
  constexpr int at_once = 16;
  pool.run((rows + at_once - 1) / at_once, [&](int part, int thread) {
    for (int row = part * at_once; row < std::min(rows, (part + 1) * at_once); ++row) task(row, thread);
  });
}

}  // namespace

decoder::decoder(std::shared_ptr<const loaded_model> model, const options& chosen, int threads)
    : model_(std::move(model)),
      options_(chosen),
      angles_(model_->config),
      kv_(model_->config, chosen.layers < 0 ? model_->config.layers - chosen.first_layer : chosen.layers, chosen.blocks,
          chosen.kv),
      hidden_stride_(padded_row(model_->config.hidden)),
      q_stride_(padded_row(model_->config.heads * model_->config.head_dim)),
      kv_stride_(padded_row(model_->config.kv_heads * model_->config.head_dim)),
      ffn_stride_(padded_row(model_->config.ffn)),
      lora_stride_(most_rank),
      quantized_(chosen.max_rows, std::max({hidden_stride_, q_stride_, ffn_stride_})) {
  const model_config& config = model_->config;
  if (options_.layers < 0) options_.layers = config.layers - options_.first_layer;
  const std::int64_t rows = chosen.max_rows;
  normed_ = aligned_buffer<float>(size(rows, hidden_stride_));
  q_ = aligned_buffer<float>(size(rows, q_stride_));
  mixed_ = aligned_buffer<float>(size(rows, q_stride_));
  k_ = aligned_buffer<float>(size(rows, kv_stride_));
  v_ = aligned_buffer<float>(size(rows, kv_stride_));
  gate_ = aligned_buffer<float>(config.gated_mlp ? size(rows, ffn_stride_) : 0);
  up_ = aligned_buffer<float>(size(rows, ffn_stride_));
  cosines_ = aligned_buffer<float>(size(rows, config.head_dim / 2));
  sines_ = aligned_buffer<float>(size(rows, config.head_dim / 2));
  // scores of all positions for a tile of queries, and one head padded for its norm
  scratch_stride_ = most_queries * chosen.blocks * positions_per_block + padded_row(config.head_dim);
  scratch_ = aligned_buffer<float>(size(threads, scratch_stride_));
}

void decoder::embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) const {
  for (const pass_sequence& sequence : batch.sequences)
    for (int i = 0; i < sequence.rows; ++i) {
      float* row = hidden + (sequence.first_row + i) * hidden_stride_;
      unpack_row(model_->embeddings, tokens[static_cast<std::size_t>(sequence.first_row + i)], row);
      if (!model_->positions) continue;
      const float* position = model_->positions + (sequence.position + i) * hidden_stride_;
      for (std::int64_t d = 0; d < model_->config.hidden; ++d) row[d] += position[d];
    }
}

void decoder::run(const compute& with, const pass& batch, float* hidden) {
  prepare(batch);
  for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
    attend(with, batch, layer, hidden);
    feed_forward(with, batch, layer, hidden);
  }
}

void decoder::logits(const compute& with, const float* hidden, std::span<const int> rows, float* out) {
  const int count = static_cast<int>(rows.size());
  for_rows(with.pool, count, [&](int i, int) {
    const std::size_t at = static_cast<std::size_t>(i);
    normalize(with, model_->final_norm, hidden + rows[at] * hidden_stride_, 1, normed_.data() + i * hidden_stride_);
  });
  matmul_args job;
  job.w = model_->head;
  job.rows = count;
  job.x = normed_.data();
  job.x_stride = hidden_stride_;
  job.y = out;
  job.y_stride = logit_stride();
  if (is_integer(job.w.kind)) {
    quantized_.assign(with, normed_.data(), hidden_stride_, count, model_->config.hidden);
    job.q = quantized_.view();
  }
  matmul(with, std::span(&job, 1));
}

/// What all layers of a pass have in common: which sequence a row belongs to, its angles, how attention is shared out.
void decoder::prepare(const pass& batch) {
  const model_config& config = model_->config;
  sequence_of_row_.resize(static_cast<std::size_t>(batch.rows));
  attention_tasks_.clear();
  for (const pass_sequence& sequence : batch.sequences) {
    for (int i = 0; i < sequence.rows; ++i) {
      const std::int64_t row = sequence.first_row + i;
      sequence_of_row_[static_cast<std::size_t>(row)] = &sequence;
      if (config.position == position_kind::rotary)
        angles_.at(sequence.position + i, cosines_.data() + row * config.head_dim / 2,
                   sines_.data() + row * config.head_dim / 2);
    }
    for (int first = 0; first < sequence.rows; first += rows_per_attention_task)
      for (std::int64_t head = 0; head < config.kv_heads; ++head)
        attention_tasks_.push_back({&sequence, head, first, std::min(rows_per_attention_task, sequence.rows - first)});
  }
}

void decoder::attend(const compute& with, const pass& batch, std::int64_t layer, float* hidden) {
  const layer_weights& weights = model_->layers[static_cast<std::size_t>(options_.first_layer + layer)];
  for_rows(with.pool, batch.rows, [&](int row, int) {
    normalize(with, weights.attention_norm, hidden + row * hidden_stride_, 1, normed_.data() + row * hidden_stride_);
  });
  const product qkv[] = {{weights.q, linear_kind::q, q_.data(), q_stride_, false},
                         {weights.k, linear_kind::k, k_.data(), kv_stride_, false},
                         {weights.v, linear_kind::v, v_.data(), kv_stride_, false}};
  apply(with, batch, layer, normed_.data(), hidden_stride_, qkv);
  position_and_store(with, batch, layer);
  with.pool.run(static_cast<int>(attention_tasks_.size()), [&](int task, int thread) {
    attention_rows(with, attention_tasks_[static_cast<std::size_t>(task)], layer, scratch_.data() + thread * scratch_stride_);
  });
  const product o[] = {{weights.o, linear_kind::o, hidden, hidden_stride_, true}};
  apply(with, batch, layer, mixed_.data(), q_stride_, o);
}

void decoder::feed_forward(const compute& with, const pass& batch, std::int64_t layer, float* hidden) {
  const layer_weights& weights = model_->layers[static_cast<std::size_t>(options_.first_layer + layer)];
  const std::int64_t ffn = model_->config.ffn;
  for_rows(with.pool, batch.rows, [&](int row, int) {
    normalize(with, weights.mlp_norm, hidden + row * hidden_stride_, 1, normed_.data() + row * hidden_stride_);
  });
  const product gate{weights.gate, linear_kind::gate, gate_.data(), ffn_stride_, false};
  const product up{weights.up, linear_kind::up, up_.data(), ffn_stride_, false};
  if (model_->config.gated_mlp) apply(with, batch, layer, normed_.data(), hidden_stride_, std::array{gate, up});
  else apply(with, batch, layer, normed_.data(), hidden_stride_, std::array{up});
  for_rows(with.pool, batch.rows, [&](int row, int) {
    float* into = up_.data() + row * ffn_stride_;
    if (model_->config.gated_mlp) with.kernels.swiglu(gate_.data() + row * ffn_stride_, into, ffn, into);
    else with.kernels.gelu_tanh(into, ffn, into);
  });
  const product down[] = {{weights.down, linear_kind::down, hidden, hidden_stride_, true}};
  apply(with, batch, layer, up_.data(), ffn_stride_, down);
}

void decoder::apply(const compute& with, const pass& batch, std::int64_t layer, const float* x, std::int64_t stride,
                    std::span<const product> products) {
  std::array<matmul_args, most_products> jobs;
  bool quantized = false;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const product& p = products[i];
    matmul_args& job = jobs[i];
    job = {};
    job.w = p.weights.w;
    job.rows = batch.rows;
    job.x = x;
    job.x_stride = stride;
    job.y = p.out;
    job.y_stride = p.stride;
    job.bias = p.weights.bias;
    job.accumulate = p.accumulate;
    if (!is_integer(job.w.kind)) continue;
    if (!quantized) quantized_.assign(with, x, stride, batch.rows, job.w.ins);
    quantized = true;
    job.q = quantized_.view();
  }
  matmul(with, std::span(jobs.data(), products.size()));
  apply_adapters(with, batch, layer, x, stride, products);
}

/// y += scale * B (A x) for every run of rows with one adapter: first all A, then all B.
void decoder::apply_adapters(const compute& with, const pass& batch, std::int64_t layer, const float* x,
                             std::int64_t stride, std::span<const product> products) {
  std::vector<matmul_args> down, up;
  for (std::size_t s = 0; s < batch.sequences.size();) {
    const pass_sequence& first = batch.sequences[s];
    int rows = 0;
    for (; s < batch.sequences.size() && batch.sequences[s].adapter == first.adapter; ++s) rows += batch.sequences[s].rows;
    if (!first.adapter) continue;
    for (std::size_t i = 0; i < products.size(); ++i) {
      const auto* lora = first.adapter->find(options_.first_layer + layer, products[i].kind);
      if (!lora) continue;
      if (lora_.size() == 0) lora_ = aligned_buffer<float>(size(options_.max_rows, lora_stride_ * most_products));
      float* between = lora_.data() + first.first_row * lora_stride_ * static_cast<std::int64_t>(most_products) +
                       static_cast<std::int64_t>(i) * lora_stride_;
      matmul_args a;
      a.w = lora->a;
      a.rows = rows;
      a.x = x + first.first_row * stride;
      a.x_stride = stride;
      a.y = between;
      a.y_stride = lora_stride_ * static_cast<std::int64_t>(most_products);
      down.push_back(a);
      matmul_args b = a;
      b.w = lora->b;
      b.x = between;
      b.x_stride = a.y_stride;
      b.y = products[i].out + first.first_row * products[i].stride;
      b.y_stride = products[i].stride;
      b.factor = lora->scale;
      b.accumulate = true;
      up.push_back(b);
    }
  }
  if (down.empty()) return;
  matmul(with, down);
  matmul(with, up);
}

void decoder::normalize(const compute& with, const norm_weights& norm, const float* from, int rows, float* to) const {
  const model_config& config = model_->config;
  for (int row = 0; row < rows; ++row, from += hidden_stride_, to += hidden_stride_) {
    if (config.norm == norm_kind::rms) with.kernels.rms_norm(from, norm.weight, config.hidden, config.norm_eps, to);
    else with.kernels.layer_norm(from, norm.weight, norm.bias, config.hidden, config.norm_eps, to);
  }
}

/// Heads of q and k are normalized where the model does so and turned by their position; keys and values are cached.
void decoder::position_and_store(const compute& with, const pass& batch, std::int64_t layer) {
  const model_config& config = model_->config;
  const layer_weights& weights = model_->layers[static_cast<std::size_t>(options_.first_layer + layer)];
  const std::int64_t dim = config.head_dim;
  const auto normalize_heads = [&](float* x, std::int64_t heads, const norm_weights& norm, float* padded) {
    for (std::int64_t head = 0; head < heads; ++head, x += dim) {
      std::fill_n(padded, padded_row(dim), 0.0f);
      std::copy_n(x, dim, padded);
      with.kernels.rms_norm(padded, norm.weight, dim, config.norm_eps, padded);
      std::copy_n(padded, dim, x);
    }
  };
  for_rows(with.pool, batch.rows, [&](int row, int thread) {
    float* q = q_.data() + row * q_stride_;
    float* k = k_.data() + row * kv_stride_;
    float* padded = scratch_.data() + (thread + 1) * scratch_stride_ - padded_row(dim);
    if (config.qk_norm) {
      normalize_heads(q, config.heads, weights.q_norm, padded);
      normalize_heads(k, config.kv_heads, weights.k_norm, padded);
    }
    if (config.position == position_kind::rotary) {
      const float* cosines = cosines_.data() + row * (dim / 2);
      const float* sines = sines_.data() + row * (dim / 2);
      with.kernels.rotate(q, config.heads, dim, cosines, sines);
      with.kernels.rotate(k, config.kv_heads, dim, cosines, sines);
    }
    const pass_sequence& sequence = *sequence_of_row_[static_cast<std::size_t>(row)];
    const std::int64_t position = sequence.position + row - sequence.first_row;
    std::byte* block = kv_.layer(layer) + sequence.blocks[position / positions_per_block] * kv_.block_bytes();
    for (std::int64_t head = 0; head < config.kv_heads; ++head)
      with.kernels.store_kv({kv_.kind(), block + head * kv_.head_bytes(), static_cast<int>(position % positions_per_block),
                             static_cast<int>(dim), k + head * dim, v_.data() + row * kv_stride_ + head * dim});
  });
}

void decoder::attention_rows(const compute& with, const attention_task& task, std::int64_t layer, float* scratch) const {
  const model_config& config = model_->config;
  const std::int64_t group = config.heads / config.kv_heads, row = task.sequence->first_row + task.first_row;
  const std::int64_t head_start = task.kv_head * group * config.head_dim;
  attention_args args;
  args.kind = kv_.kind();
  args.cache = kv_.layer(layer);
  args.block_bytes = kv_.block_bytes();
  args.head_offset = task.kv_head * kv_.head_bytes();
  args.block_table = task.sequence->blocks;
  args.head_dim = static_cast<int>(config.head_dim);
  args.group = static_cast<int>(group);
  args.q = q_.data() + row * q_stride_ + head_start;
  args.out = mixed_.data() + row * q_stride_ + head_start;
  args.row_stride = q_stride_;
  args.rows = task.rows;
  args.first_position = task.sequence->position + task.first_row;
  if (!config.windows.empty()) args.window = config.windows[static_cast<std::size_t>(options_.first_layer + layer)];
  args.scratch = scratch;
  with.kernels.attend(args);
}

}  // namespace troupe
