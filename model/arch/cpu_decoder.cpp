#include "model/arch/cpu_decoder.hpp"

#include <algorithm>
#include <array>

#include "model/ops/pack.hpp"

namespace troupe {
namespace {

constexpr int rows_per_attention_task = 32;
constexpr std::int64_t lora_stride = most_adapter_rank;

std::size_t size(std::int64_t rows, std::int64_t stride) {
  return static_cast<std::size_t>(rows * stride);
}

/// Row-wise work, `at_once` rows a task: a few are not worth handing over.
template <class Task>
void for_rows(thread_pool& pool, int rows, int at_once, Task task) {
  pool.run((rows + at_once - 1) / at_once, [&](int part, int thread) {
    for (int row = part * at_once; row < std::min(rows, (part + 1) * at_once); ++row) task(row, thread);
  });
}

column_cut cut_outputs(const tensor_split& split, std::int64_t outs) {
  return cut_columns(split, padded_outs(outs) / outs_per_block, outs_per_block);
}

}  // namespace

cpu_decoder::cpu_decoder(std::shared_ptr<const loaded_model> model, const options& chosen, const compute& with)
    : decoder(std::move(model), chosen),
      with_(with),
      gather_(chosen.split),
      heads_(cut_columns(chosen.split, model_->config.kv_heads, 1)),
      q_cut_(cut_columns(chosen.split, model_->config.kv_heads,
                         model_->config.heads / model_->config.kv_heads * model_->config.head_dim)),
      kv_cut_(cut_columns(chosen.split, model_->config.kv_heads, model_->config.head_dim)),
      hidden_cut_(cut_outputs(chosen.split, model_->config.hidden)),
      ffn_cut_(cut_outputs(chosen.split, model_->config.ffn)),
      vocab_cut_(cut_outputs(chosen.split, model_->config.vocab_size)),
      angles_(model_->config),
      kv_(model_->config, heads_.count(), options_.layers, chosen.blocks, chosen.kv),
      q_stride_(padded_row(model_->config.heads * model_->config.head_dim)),
      kv_stride_(padded_row(model_->config.kv_heads * model_->config.head_dim)),
      ffn_stride_(padded_row(model_->config.ffn)),
      quantized_(chosen.max_rows, std::max({hidden_stride(), q_stride_, ffn_stride_})) {
  const model_config& config = model_->config;
  check(chosen.split, config);
  const std::int64_t rows = chosen.max_rows;
  normed_ = aligned_buffer<float>(size(rows, hidden_stride()));
  q_ = aligned_buffer<float>(size(rows, q_stride_));
  mixed_ = aligned_buffer<float>(size(rows, q_stride_));
  k_ = aligned_buffer<float>(size(rows, kv_stride_));
  v_ = aligned_buffer<float>(size(rows, kv_stride_));
  gate_ = aligned_buffer<float>(config.gated_mlp ? size(rows, ffn_stride_) : 0);
  up_ = aligned_buffer<float>(size(rows, ffn_stride_));
  cosines_ = aligned_buffer<float>(size(rows, config.head_dim / 2));
  sines_ = aligned_buffer<float>(size(rows, config.head_dim / 2));
  // scores of all positions for a tile of queries, and one head padded for its norm
  const std::int64_t positions = rounded_up(options_.context, 16);
  scratch_stride_ = attention_queries * positions + padded_row(config.head_dim);
  scratch_ = aligned_buffer<float>(size(with.pool.threads(), scratch_stride_));
}

void cpu_decoder::embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) {
  for (const pass_sequence& sequence : batch.sequences)
    for_rows(with_.pool, sequence.rows, 16, [&](int i, int) {
      float* row = hidden + (sequence.first_row + i) * hidden_stride();
      unpack_row(model_->embeddings, tokens[static_cast<std::size_t>(sequence.first_row + i)], row);
      if (!model_->positions) return;
      with_.kernels.add(model_->positions + (sequence.position + i) * hidden_stride(), model_->config.hidden, row);
    });
}

void cpu_decoder::run(const pass& batch, float* hidden) {
  prepare(batch);
  for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
    attend(batch, layer, hidden);
    feed_forward(batch, layer, hidden);
  }
}

float* cpu_decoder::lend(std::size_t rows, std::int64_t stride) {
  const std::size_t needed = rows * static_cast<std::size_t>(stride);
  if (lent_.size() < needed) lent_ = aligned_buffer<float>(needed);
  return lent_.data();
}

const float* cpu_decoder::logits(const float* hidden, const wanted_logits& wanted) {
  const std::span<const int> rows = wanted.rows;
  if (rows.empty()) return nullptr;
  float* const out = lend(rows.size(), logit_stride());
  const int count = static_cast<int>(rows.size());
  const linear_weights head{model_->head, nullptr};
  const product products[] = {{head, linear_kind::q, out, logit_stride(), false, vocab_cut_}};
  prepare_input(count, normed_.data(), hidden_stride(), products, [&](int i) {
    normalize(model_->final_norm, hidden + rows[static_cast<std::size_t>(i)] * hidden_stride(),
              normed_.data() + i * hidden_stride());
  });
  matmul(with_, std::span(jobs_of(count, normed_.data(), hidden_stride(), products).data(), 1));
  gather_(with_, out, count, logit_stride(), vocab_cut_, 0);
  return out;
}

const float* cpu_decoder::normalized(const float* hidden, std::span<const int> rows) {
  float* const out = lend(rows.size(), hidden_stride());
  for_rows(with_.pool, static_cast<int>(rows.size()), 16, [&](int i, int) {
    normalize(model_->final_norm, hidden + rows[static_cast<std::size_t>(i)] * hidden_stride(),
              out + i * hidden_stride());
  });
  return out;
}

/// What all layers of a pass have in common: the rows' angles, and how attention is shared out.
void cpu_decoder::prepare(const pass& batch) {
  const model_config& config = model_->config;
  attention_tasks_.clear();
  // One thread takes several heads of a sequence, since they lie side by side; but there should be tasks enough for
  // all.
  const auto tasks = static_cast<std::int64_t>(batch.sequences.size()) * heads_.count();
  const std::int64_t heads = std::clamp<std::int64_t>(tasks / (with_.pool.threads() * 8), 1, heads_.count());
  many_rows_ = false;
  for (const pass_sequence& sequence : batch.sequences) {
    many_rows_ |= sequence.rows > 1;
    if (config.position == position_kind::rotary)
      for_rows(with_.pool, sequence.rows, 16, [&](int i, int) {
        const std::int64_t at = (sequence.first_row + i) * (config.head_dim / 2);
        angles_.at(sequence.position + i, cosines_.data() + at, sines_.data() + at);
      });
    for (int first = 0; first < sequence.rows; first += rows_per_attention_task)
      for (std::int64_t head = heads_.first; head < heads_.last; head += heads)
        attention_tasks_.push_back({&sequence, head, std::min(heads, heads_.last - head), first,
                                    std::min(rows_per_attention_task, sequence.rows - first)});
  }
}

void cpu_decoder::attend(const pass& batch, std::int64_t layer, float* hidden) {
  const layer_weights& weights = weights_of(layer);
  const product qkv[] = {{weights.q, linear_kind::q, q_.data(), q_stride_, false, q_cut_},
                         {weights.k, linear_kind::k, k_.data(), kv_stride_, false, kv_cut_},
                         {weights.v, linear_kind::v, v_.data(), kv_stride_, false, kv_cut_}};
  prepare_input(batch.rows, normed_.data(), hidden_stride(), qkv, [&](int row) {
    normalize(weights.attention_norm, hidden + row * hidden_stride(), normed_.data() + row * hidden_stride());
  });
  apply(batch, layer, normed_.data(), hidden_stride(), qkv);
  const auto for_heads = [&](auto work) {
    with_.pool.run(static_cast<int>(attention_tasks_.size()), [&](int index, int thread) {
      const attention_task& task = attention_tasks_[static_cast<std::size_t>(index)];
      for (std::int64_t head = task.first_head; head < task.first_head + task.heads; ++head)
        work(task, head, scratch_.data() + thread * scratch_stride_);
    });
  };
  using task = const attention_task&;
  if (many_rows_) for_heads([&](task t, std::int64_t head, float* scratch) { store_keys(t, head, layer, scratch); });
  for_heads([&](task t, std::int64_t head, float* scratch) {
    if (!many_rows_) store_keys(t, head, layer, scratch);
    attend_rows(t, head, layer, scratch);
  });
  const product o[] = {{weights.o, linear_kind::o, hidden, hidden_stride(), true, hidden_cut_}};
  prepare_gathered(batch.rows, mixed_.data(), q_stride_, q_cut_, o, [](int) {});
  apply(batch, layer, mixed_.data(), q_stride_, o);
  gather_(with_, hidden, batch.rows, hidden_stride(), hidden_cut_);
}

void cpu_decoder::feed_forward(const pass& batch, std::int64_t layer, float* hidden) {
  const layer_weights& weights = weights_of(layer);
  const std::int64_t columns = std::min(ffn_cut_.last, model_->config.ffn) - ffn_cut_.first;
  const bool gated = model_->config.gated_mlp;
  const product both[] = {{weights.up, linear_kind::up, up_.data(), ffn_stride_, false, ffn_cut_},
                          {weights.gate, linear_kind::gate, gate_.data(), ffn_stride_, false, ffn_cut_}};
  const std::span<const product> inner(both, gated ? 2 : 1);
  prepare_input(batch.rows, normed_.data(), hidden_stride(), inner, [&](int row) {
    normalize(weights.mlp_norm, hidden + row * hidden_stride(), normed_.data() + row * hidden_stride());
  });
  apply(batch, layer, normed_.data(), hidden_stride(), inner);
  const product down[] = {{weights.down, linear_kind::down, hidden, hidden_stride(), true, hidden_cut_}};
  prepare_gathered(batch.rows, up_.data(), ffn_stride_, ffn_cut_, down, [&](int row) {
    const std::int64_t first = row * ffn_stride_ + ffn_cut_.first;
    float* into = up_.data() + first;
    if (gated)
      with_.kernels.swiglu(gate_.data() + first, into, columns, into);
    else
      with_.kernels.gelu_tanh(into, columns, into);
  });
  apply(batch, layer, up_.data(), ffn_stride_, down);
  gather_(with_, hidden, batch.rows, hidden_stride(), hidden_cut_);
}

template <class MakeRow>
void cpu_decoder::prepare_input(int rows, const float* x, std::int64_t stride, std::span<const product> products,
                                MakeRow make_row) {
  const bool integers =
      std::any_of(products.begin(), products.end(), [](const product& p) { return is_integer(p.weights.w.kind); });
  if (integers) quantized_.begin(rows, products.front().weights.w.ins);
  // rows of a tile lie in the same cache lines
  for_rows(with_.pool, rows, integers ? quantized_.view().tile : 8, [&](int row, int) {
    make_row(row);
    if (integers) quantized_.put(with_.kernels, row, x + row * stride);
  });
}

template <class MakeRow>
void cpu_decoder::prepare_gathered(int rows, float* x, std::int64_t stride, const column_cut& cut,
                                   std::span<const product> products, MakeRow make_row) {
  if (gather_.split().is_whole()) return prepare_input(rows, x, stride, products, make_row);
  for_rows(with_.pool, rows, 8, [&](int row, int) { make_row(row); });
  gather_(with_, x, rows, stride, cut);
  prepare_input(rows, x, stride, products, [](int) {});
}

std::array<matmul_args, cpu_decoder::most_products> cpu_decoder::jobs_of(int rows, const float* x, std::int64_t stride,
                                                                         std::span<const product> products) const {
  std::array<matmul_args, most_products> jobs;
  for (std::size_t i = 0; i < products.size(); ++i) {
    const product& p = products[i];
    jobs[i] = {.w = p.weights.w,
               .rows = rows,
               .q = quantized_.view(),
               .x = x,
               .x_stride = stride,
               .y = p.out,
               .y_stride = p.stride,
               .bias = p.weights.bias,
               .accumulate = p.accumulate,
               .first_block = p.made.first_block(),
               .last_block = p.made.last_block()};
  }
  return jobs;
}

void cpu_decoder::apply(const pass& batch, std::int64_t layer, const float* x, std::int64_t stride,
                        std::span<const product> products) {
  const auto jobs = jobs_of(batch.rows, x, stride, products);
  find_adapters(batch, layer, std::span(jobs.data(), products.size()), products);
  matmul(with_, std::span(jobs.data(), products.size()), adapters_);
}

/// y += scale * B (A x) for every run of rows with one adapter, one product after the other.
void cpu_decoder::find_adapters(const pass& batch, std::int64_t layer, std::span<const matmul_args> jobs,
                                std::span<const product> products) {
  constexpr auto stride = lora_stride * static_cast<std::int64_t>(most_products);
  adapters_.clear();
  for (std::size_t i = 0; i < products.size(); ++i) {
    const matmul_args& job = jobs[i];
    for (std::size_t s = 0; s < batch.sequences.size();) {
      const pass_sequence& first = batch.sequences[s];
      int rows = 0;
      for (; s < batch.sequences.size() && batch.sequences[s].adapter == first.adapter; ++s)
        rows += batch.sequences[s].rows;
      const auto* lora = first.adapter ? first.adapter->find(options_.first_layer + layer, products[i].kind) : nullptr;
      if (!lora) continue;
      if (lora_.size() == 0) lora_ = aligned_buffer<float>(size(options_.max_rows, stride));
      float* between = lora_.data() + first.first_row * stride + static_cast<std::int64_t>(i) * lora_stride;
      adapters_.push_back({i,
                           {.a = lora->a,
                            .b = lora->b,
                            .scale = lora->scale,
                            .rows = rows,
                            .x = job.x + first.first_row * job.x_stride,
                            .x_stride = job.x_stride,
                            .between = between,
                            .between_stride = stride,
                            .y = job.y + first.first_row * job.y_stride,
                            .y_stride = job.y_stride}});
    }
  }
  for (std::size_t i = 1; i < adapters_.size(); ++i) adapters_[i - 1].adapter.next = &adapters_[i].adapter;
}

void cpu_decoder::normalize(const norm_weights& norm, const float* from, float* to) const {
  const model_config& config = model_->config;
  if (config.norm == norm_kind::rms)
    with_.kernels.rms_norm(from, norm.weight, config.hidden, config.norm_eps, to);
  else
    with_.kernels.layer_norm(from, norm.weight, norm.bias, config.hidden, config.norm_eps, to);
}

/// Heads of one row: normalized where the model does so, and turned by the row's position.
void cpu_decoder::place_heads(std::int64_t row, float* heads, std::int64_t count, const norm_weights& norm,
                              float* scratch) const {
  const std::int64_t dim = model_->config.head_dim;
  if (model_->config.qk_norm)
    for (float* head = heads; head < heads + count * dim; head += dim) {
      std::fill_n(scratch, padded_row(dim), 0.0f);
      std::copy_n(head, dim, scratch);
      with_.kernels.rms_norm(scratch, norm.weight, dim, model_->config.norm_eps, scratch);
      std::copy_n(scratch, dim, head);
    }
  if (model_->config.position == position_kind::rotary)
    with_.kernels.rotate(heads, count, dim, cosines_.data() + row * (dim / 2), sines_.data() + row * (dim / 2));
}

/// Keys are turned by their positions; keys and values are cached, a block's share of the rows at a time.
void cpu_decoder::store_keys(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const {
  const layer_weights& weights = weights_of(layer);
  const std::int64_t dim = model_->config.head_dim, offset = head * dim;
  for (int i = task.first_row; i < task.first_row + task.rows;) {
    const std::int64_t row = task.sequence->first_row + i, position = task.sequence->position + i;
    const int slot = static_cast<int>(position % positions_per_block);
    const int rows = std::min(static_cast<int>(positions_per_block) - slot, task.first_row + task.rows - i);
    float* keys = k_.data() + row * kv_stride_ + offset;
    for (int r = 0; r < rows; ++r) place_heads(row + r, keys + r * kv_stride_, 1, weights.k_norm, scratch);
    std::byte* block = kv_.layer(layer) + task.sequence->blocks[position / positions_per_block] * kv_.block_bytes();
    with_.kernels.store_kv({kv_.kind(), block + (head - heads_.first) * kv_.head_bytes(), slot, rows,
                            static_cast<int>(dim), keys, v_.data() + row * kv_stride_ + offset, kv_stride_});
    i += rows;
  }
}

void cpu_decoder::attend_rows(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const {
  const model_config& config = model_->config;
  const std::int64_t group = config.heads / config.kv_heads, row = task.sequence->first_row + task.first_row;
  const std::int64_t head_start = head * group * config.head_dim;
  const layer_weights& weights = weights_of(layer);
  for (std::int64_t i = row; i < row + task.rows; ++i)
    place_heads(i, q_.data() + i * q_stride_ + head_start, group, weights.q_norm, scratch);
  attention_args args;
  args.kind = kv_.kind();
  args.cache = kv_.layer(layer);
  args.block_bytes = kv_.block_bytes();
  args.head_offset = (head - heads_.first) * kv_.head_bytes();
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
  with_.kernels.attend(args);
}

}  // namespace troupe
