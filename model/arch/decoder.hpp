#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/arch/tensor_split.hpp"
#include "model/lora/adapter.hpp"
#include "model/ops/compute.hpp"
#include "model/ops/matmul.hpp"
#include "model/ops/rope.hpp"

namespace troupe {

/// One sequence's rows of a pass: consecutive tokens whose keys and values go behind those cached already.
struct pass_sequence {
  int first_row = 0;
  int rows = 0;
  std::int64_t position = 0;             ///< of the first row
  const std::int32_t* blocks = nullptr;  ///< block table, covering position + rows
  const lora_adapter* adapter = nullptr;
};

/// A ragged batch: the rows of all sequences one after another. Neighbours with the same adapter share its products.
struct pass {
  std::span<const pass_sequence> sequences;
  int rows = 0;
};

/// A run of consecutive layers over ragged batches. What a row becomes depends on its own sequence alone, bit for bit:
/// every operation treats rows independently and adds in an order that only the weights' shapes decide.
/// With a split, several of them compute together, and each stores its heads' keys and values.
/// Holds the working memory of one pass at a time; one thread calls it, the pool of `compute` helps.
class decoder {
 public:
  struct options {
    std::int64_t first_layer = 0;
    std::int64_t layers = -1;  ///< -1: to the last
    int max_rows = 512;
    kv_kind kv = kv_kind::f16;
    std::int64_t blocks = 0;   ///< of KV storage
    std::int64_t context = 0;  ///< positions of one sequence at most; 0: as many as the blocks hold
    tensor_split split = {};
  };
  decoder(std::shared_ptr<const loaded_model> model, const options& chosen, int threads);

  /// Rows of hidden state for these tokens: [rows, hidden_stride()].
  void embed(const compute& with, const pass& batch, std::span<const std::int32_t> tokens, float* hidden) const;
  /// Runs the layers over `hidden` in place, and stores keys and values.
  void run(const compute& with, const pass& batch, float* hidden);
  /// Logits of some rows after the final norm: [rows.size(), logit_stride()]. Of a split decoder rank 0 gets them.
  void logits(const compute& with, const float* hidden, std::span<const int> rows, float* out);

  /// Some rows after the final norm: [rows.size(), hidden_stride()].
  void normalized(const compute& with, const float* hidden, std::span<const int> rows, float* out) const;

  std::int64_t hidden_stride() const { return hidden_stride_; }
  std::int64_t logit_stride() const { return padded_outs(model_->config.vocab_size); }
  bool is_first_rank() const { return gather_.split().rank == 0; }
  int max_rows() const { return options_.max_rows; }
  const loaded_model& model() const { return *model_; }
  const kv_storage& kv() const { return kv_; }

 private:
  static constexpr std::size_t most_products = 3;  ///< that share an input

  /// One linear layer of a group that shares its input.
  struct product {
    const linear_weights& weights;
    linear_kind kind;
    float* out;
    std::int64_t stride;
    bool accumulate;
    const column_cut& made;  ///< by this rank
  };
  /// Some rows of a sequence, and the query heads that share some kv heads.
  struct attention_task {
    const pass_sequence* sequence;
    std::int64_t first_head, heads;  // kv heads
    int first_row, rows;
  };

  void prepare(const compute& with, const pass& batch);
  void attend(const compute& with, const pass& batch, std::int64_t layer, float* hidden);
  void feed_forward(const compute& with, const pass& batch, std::int64_t layer, float* hidden);
  /// Makes the rows that some products share as input, as floats in `x` and, where a weight asks for it, as integers.
  template <class MakeRow>
  void prepare_input(const compute& with, int rows, const float* x, std::int64_t stride,
                     std::span<const product> products, MakeRow make_row);
  /// The same where the ranks make some columns of these rows each: makes them, gets the others, goes on.
  template <class MakeRow>
  void prepare_gathered(const compute& with, int rows, float* x, std::int64_t stride, const column_cut& cut,
                        std::span<const product> products, MakeRow make_row);
  std::array<matmul_args, most_products> jobs_of(int rows, const float* x, std::int64_t stride,
                                                 std::span<const product> products) const;
  void apply(const compute& with, const pass& batch, std::int64_t layer, const float* x, std::int64_t stride,
             std::span<const product> products);
  void find_adapters(const pass& batch, std::int64_t layer, std::span<const matmul_args> jobs,
                     std::span<const product> products);
  void normalize(const compute& with, const norm_weights& norm, const float* from, float* to) const;
  void store_keys(const compute& with, const attention_task& task, std::int64_t head, std::int64_t layer,
                  float* scratch) const;
  void attend_rows(const compute& with, const attention_task& task, std::int64_t head, std::int64_t layer,
                   float* scratch) const;
  void place_heads(const compute& with, std::int64_t row, float* heads, std::int64_t count, const norm_weights& norm,
                   float* scratch) const;

  std::shared_ptr<const loaded_model> model_;
  options options_;
  column_gather gather_;
  column_cut heads_, q_cut_, kv_cut_, hidden_cut_, ffn_cut_, vocab_cut_;  ///< heads_: of keys and values, one a column
  rope_angles angles_;
  kv_storage kv_;
  std::int64_t hidden_stride_, q_stride_, kv_stride_, ffn_stride_;
  quantized_rows quantized_;
  aligned_buffer<float> normed_, q_, k_, v_, mixed_, gate_, up_, lora_, cosines_, sines_, scratch_;
  std::int64_t scratch_stride_ = 0;
  std::vector<attention_task> attention_tasks_;
  std::vector<adapted_job> adapters_;  ///< of the products being made
  bool many_rows_ = false;             ///< of one sequence: then all keys are stored before any query is answered
};

}  // namespace troupe
