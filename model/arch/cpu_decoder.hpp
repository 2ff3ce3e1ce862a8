#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/arch/decoder.hpp"
#include "model/arch/expert_routes.hpp"
#include "model/arch/latent_places.hpp"
#include "model/arch/state_storage.hpp"
#include "model/ops/matmul.hpp"
#include "model/ops/rope.hpp"
#include "model/ops/rows.hpp"

namespace troupe {

/// A decoder on the processor: the pool of `with` helps the thread that calls it.
class cpu_decoder final : public decoder {
 public:
  cpu_decoder(std::shared_ptr<const loaded_model> model, const options& chosen, const compute& with);

  void add_adapter(const lora_adapter&) override {}  // its kernels read adapters where they are
  void remove_adapter(const lora_adapter&) override {}
  void copy_block(std::int64_t from, std::int64_t to) override { kv_.copy_block(from, to); }
  void copy_state(std::int32_t from, std::int32_t to) override { states_.copy(from, to); }
  void embed(const pass& batch, std::span<const std::int32_t> tokens, float* hidden) override;
  void run(const pass& batch, float* hidden) override;
  const float* logits(const float* hidden, const wanted_logits& wanted) override;
  const float* normalized(const float* hidden, std::span<const int> rows) override;

 private:
  static constexpr std::size_t most_products = 4;  ///< that share an input

  /// One linear layer of some that share their input, and where its outputs go.
  struct linear_product {
    std::optional<linear_kind> kind;  ///< none: the head, which no adapter changes
    const linear_weights& weights;
    float_rows to;
    const column_cut& columns;  ///< that this rank makes
    bool accumulate = false;
  };
  /// Neighbouring rows with one adapter.
  struct adapter_run {
    const lora_adapter* adapter;
    int first_row, rows;
  };
  /// Some rows of a sequence, and the query heads that share some kv heads, or a part of those that share one.
  struct attention_task {
    const pass_sequence* sequence;
    std::int64_t first_head, heads;     // kv heads
    std::int64_t first_query, queries;  // of each kv head
    int first_row, rows;
    const attention_task* after;  ///< likely to be this thread's next; may be null
  };

  /// The cosines and sines of a pass's rows by one of the model's ropes.
  struct turned_rows {
    std::int64_t dim;  ///< how much of a head turns
    rope_angles angles;
    aligned_buffer<float> cosines, sines;
  };

  /// What mixtures of experts work with.
  struct expert_memory {
    std::int64_t gate_stride = 0;
    aligned_buffer<float> scores;         ///< the router's, of as many rows as are run together
    aligned_buffer<float> places;         ///< of experts' inputs, and of what they make
    aligned_buffer<float> gate, up;       ///< [places, gate_stride]
    aligned_buffer<float> apart;          ///< [rows, hidden_stride()]: what experts apart from an mlp make
    aligned_buffer<float> shared_shares;  ///< [rows, outs_per_block], of which the first counts
    std::vector<matmul_args> jobs;
  };

  /// What layers of linear attention work with.
  struct delta_memory {
    std::int64_t qkv_stride = 0, value_stride = 0, share_stride = 0;
    aligned_buffer<float> qkv, z, out;  ///< [rows, qkv_stride], [rows, value_stride]
    aligned_buffer<float> a, b;         ///< [rows, share_stride]: of each value head, what it decays and learns by
    aligned_buffer<float> rates;        ///< [layers, share_stride]: of decay
    column_cut qkv_columns, value_columns, share_columns;  ///< all of them
  };

  /// What latent attention works with.
  struct latent_memory {
    std::int64_t down_stride = 0, query_stride = 0, value_stride = 0;
    aligned_buffer<float> down, queries, values;  ///< [rows, down_stride] and so on: all heads side by side
    aligned_buffer<float> places;                 ///< each head's part of some rows, one head after the other
    std::vector<matmul_args> jobs;
  };

  /// What layers of short convolutions work with.
  struct convolution_memory {
    std::int64_t in_stride = 0;
    aligned_buffer<float> in;   ///< [rows, in_stride]: b, c and x
    aligned_buffer<float> out;  ///< [rows, hidden_stride()]
    column_cut columns;         ///< all of `in`
  };

  /// What layers with heads of one shape have in common.
  struct head_shape {
    output_cuts cuts;
    std::int64_t group;                 ///< query heads that share a kv head
    std::vector<attention_task> tasks;  ///< of the pass
  };

  /// What rows bring of their tokens to the layers.
  struct token_memory {
    std::int64_t stride = 0, gate_stride = 0;  ///< of a row's numbers for all layers, and for one
    aligned_buffer<float> numbers, looked_up;  ///< [rows, stride], [threads, stride]
    aligned_buffer<float> gates;               ///< [rows, gate_stride]: what a layer lets through
    column_cut all_columns, columns;           ///< all of numbers and of gates
  };

  static aligned_buffer<float> floats(std::int64_t rows, std::int64_t stride);
  float* lend(std::size_t rows, std::int64_t stride);
  const layer_weights& weights_of(std::int64_t layer) const { return model_->layers[to_size(layer)]; }
  void take_angles();
  void prepare_angles(const pass& batch);
  void group_by_adapter(const pass& batch);
  /// What the rows read of each other, as the layer has it. Here and below, `layer` counts from the model's first one.
  void mix(const pass& batch, std::int64_t layer, float_rows hidden);
  void attend(const pass& batch, std::int64_t layer, float_rows hidden);
  /// q, k and v of all heads.
  void project_heads(const pass& batch, std::int64_t layer, float_rows hidden);
  void feed_forward(const pass& batch, std::int64_t layer, float_rows hidden);
  void finish_layer(const pass& batch, std::int64_t layer, float_rows hidden);
  void activate_mlp(const layer_weights& weights, const column_cut& cut, const_float_rows gate, float_rows up,
                    int row) const;
  /// Makes the rows that some products share as input, as floats in `x` and, where a weight asks for it, as integers.
  template <class MakeRow>
  void prepare_input(int rows, float_rows x, std::span<const linear_product> products, MakeRow make_row);
  /// The same where the ranks make some columns of these rows each: makes them, gets the others, goes on.
  template <class MakeRow>
  void prepare_gathered(int rows, float_rows x, const column_cut& cut, std::span<const linear_product> products,
                        MakeRow make_row);
  std::array<matmul_args, most_products> jobs_of(int rows, float_rows x,
                                                 std::span<const linear_product> products) const;
  /// work(sequence, part), `parts` of them for each sequence.
  template <class Work>
  void for_parts(const pass& batch, std::int64_t parts, Work work);
  void multiply(const pass& batch, std::int64_t layer, float_rows x, std::span<const linear_product> products);
  void find_adapters(std::int64_t layer, std::span<const matmul_args> jobs, std::span<const linear_product> products);
  /// Without weights there is no norm: the row is copied.
  void normalize(const norm_weights& norm, const float* from, float* to) const;
  void normalize_heads(const pass& batch, const norm_weights& norm, float_rows heads, const column_cut& cut);
  /// What a layer adds to `hidden`: made there, or aside where it is normalized first.
  linear_product output_product(linear_kind kind, const linear_weights& weights, float_rows hidden) const;
  void finish_logits(int rows, float_rows logits) const;
  void finish_output(const pass& batch, const norm_weights& norm, float_rows hidden);

  // cpu_decoder_experts.cpp
  void take_expert_memory();
  void mix_experts(const pass& batch, const layer_weights& weights, float_rows hidden);
  void run_experts(const layer_weights& weights, float_rows normed);
  /// Makes the rows at all places, as floats in `x` and, where the experts ask for it, as integers.
  template <class MakeRow>
  void prepare_places(const layer_weights& weights, float_rows x, std::int64_t ins, MakeRow make_row);
  /// Of the rows of each group with one of its expert's matrices.
  void add_group_jobs(const layer_weights& weights, matrix_view expert_weights::*of, const float* expert_biases::*bias,
                      float_rows x, float_rows y);
  void add_visits(float_rows hidden, int rows);
  void mix_experts_apart(const pass& batch, const layer_weights& weights, float_rows hidden);
  void join_apart(const pass& batch, const layer_weights& weights);

  // cpu_decoder_tokens.cpp
  void take_token_memory();
  void bring_tokens(const pass& batch, std::span<const std::int32_t> tokens, float_rows embedded);
  void add_tokens(const pass& batch, std::int64_t layer, float_rows hidden);

  // cpu_decoder_delta.cpp
  void take_delta_memory();
  float* rates_of(std::int64_t layer);
  void run_delta(const pass& batch, std::int64_t layer, float_rows hidden);
  void convolve_part(const pass_sequence& sequence, std::int64_t layer, std::int64_t part);
  void find_shares(const pass_sequence& sequence, std::int64_t layer);
  void run_delta_head(const pass_sequence& sequence, std::int64_t layer, std::int64_t head);

  // cpu_decoder_convolution.cpp
  void take_convolution_memory();
  void run_convolution(const pass& batch, std::int64_t layer, float_rows hidden);
  void convolve_columns(const pass_sequence& sequence, std::int64_t layer, std::int64_t first, std::int64_t columns);

  // cpu_decoder_latent.cpp
  void take_latent_memory();
  /// The row that is kept, and the queries that look for it.
  void project_latent(const pass& batch, std::int64_t layer, float_rows hidden);
  void place_queries(const pass& batch, std::int64_t layer);
  void normalize_kept(std::int64_t layer, float* row, float* scratch) const;
  /// What heads make of the rows that they mixed.
  float_rows values_of_heads(const pass& batch, std::int64_t layer);
  /// Each head's numbers of all rows, by its matrix: the parts of a row lie a step apart.
  struct head_rows {
    float_rows rows;
    std::int64_t step;
  };
  void multiply_heads(const pass& batch, std::int64_t layer, matrix_view head_parts<matrix_view>::*by, head_rows from,
                      head_rows to);

  // cpu_decoder_heads.cpp
  const head_shape& shape_of(std::int64_t layer) const;
  std::int64_t queries_of_task(const pass& batch, const head_shape& shape) const;
  void share_out_heads(const pass& batch, head_shape& shape);
  void attend_heads(std::int64_t layer);
  void store_keys(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const;
  void place_value(std::int64_t layer, const float* key, float* value) const;
  void attend_rows(const attention_task& task, std::int64_t head, std::int64_t layer, float* scratch) const;
  void open_gates(std::int64_t first_row, int rows, std::int64_t column, std::int64_t columns) const;
  void place_heads(std::int64_t layer, std::int64_t row, float* heads, std::int64_t count, const norm_weights& norm,
                   float* scratch) const;

  compute with_;
  column_gather gather_;
  head_shape heads_, wide_heads_;    ///< wide_heads_: of layers that config.is_wide, heads_: of the others
  const output_cuts& cuts_;          ///< of what all layers have
  std::vector<turned_rows> turned_;  ///< by layer_rope
  kv_storage kv_;
  state_storage states_;
  std::int64_t q_stride_, kv_stride_, mlp_stride_;
  quantized_rows quantized_;
  aligned_buffer<float> normed_, q_, k_, v_, mixed_, gate_, up_, lora_, scratch_, lent_;
  std::int64_t scratch_stride_ = 0;
  std::vector<adapter_run> adapter_runs_;  ///< of the pass
  std::vector<adapted_job> adapters_;      ///< of the products being made
  expert_routes routes_;
  expert_memory experts_;
  delta_memory delta_;
  convolution_memory convolution_;
  latent_memory latent_;
  token_memory tokens_;
  /// All keys are stored before any query is answered: a sequence has many rows, or several tasks read one head's.
  bool stores_first_ = false;
};

template <class MakeRow>
void cpu_decoder::prepare_input(int rows, float_rows x, std::span<const linear_product> products, MakeRow make_row) {
  const bool integers = std::any_of(products.begin(), products.end(),
                                    [](const linear_product& p) { return is_integer(p.weights.w.kind); });
  if (integers) quantized_.begin(rows, products.front().weights.w.ins);
  // rows of a tile lie in the same cache lines
  with_.pool.run_each(rows, integers ? quantized_.view().tile.rows : 8, [&](int row) {
    make_row(row);
    if (integers) quantized_.put(row, x.row(row));
  });
}

/// One thread takes several parts of a sequence where there are many: a part may take less than handing it over.
template <class Work>
void cpu_decoder::for_parts(const pass& batch, std::int64_t parts, Work work) {
  const std::int64_t all = static_cast<std::int64_t>(batch.sequences.size()) * parts;
  const std::int64_t together = std::clamp<std::int64_t>(all / (with_.pool.threads() * 8), 1, parts);
  const std::int64_t tasks = ceil_div(parts, together);  // of a sequence
  with_.pool.run(static_cast<int>(static_cast<std::int64_t>(batch.sequences.size()) * tasks), [&](int index, int) {
    const pass_sequence& sequence = batch.sequences[to_size(index / tasks)];
    const std::int64_t first = index % tasks * together;
    for (std::int64_t part = first; part < std::min(first + together, parts); ++part) work(sequence, part);
  });
}

}  // namespace troupe
