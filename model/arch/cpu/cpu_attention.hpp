#pragma once
#include <optional>
#include <vector>

#include "model/arch/cpu/cpu_latent.hpp"
#include "model/arch/cpu/cpu_products.hpp"
#include "model/arch/cpu/row_angles.hpp"
#include "model/arch/kv_storage.hpp"

namespace troupe {

/// A layer's attention: its heads are made, placed, cached and attended, and what they mix is joined.
class cpu_attention {
 public:
  cpu_attention(cpu_products& products, const decoder::options& chosen);

  /// Before the layers of a pass.
  void begin(const pass& batch);
  void run(const layer_pass& at);
  void copy_block(std::int64_t from, std::int64_t to) { kv_.copy_block(from, to); }

 private:
  /// Some rows of a sequence, and the query heads that share some kv heads, or a part of those that share one.
  struct attention_task {
    const pass_sequence* sequence;
    std::int64_t first_head, heads;     // kv heads
    std::int64_t first_query, queries;  // of each kv head
    int first_row, rows;
    const attention_task* after;  ///< likely to be this thread's next; may be null
  };
  /// What layers with heads of one shape have in common.
  struct head_shape {
    output_cuts cuts;
    std::int64_t group;                 ///< query heads that share a kv head
    std::vector<attention_task> tasks;  ///< of the pass
  };

  const head_shape& shape_of(std::int64_t layer) const { return config_.is_wide(layer) ? wide_heads_ : heads_; }
  /// q, k and v of all heads.
  void project_heads(const layer_pass& at);
  void normalize_heads(const layer_pass& at, const norm_weights& norm, float_rows heads, const column_cut& cut);
  std::int64_t queries_of_task(const pass& batch, const head_shape& shape) const;
  void share_out_heads(const pass& batch, head_shape& shape);

  // cpu_attention_heads.cpp
  void attend_heads(const layer_pass& at);
  void store_keys(const layer_pass& at, const attention_task& task, std::int64_t head, float* scratch) const;
  void place_value(const layer_pass& at, const float* key, float* value) const;
  void place_heads(const layer_pass& at, std::int64_t row, float* heads, std::int64_t count, const norm_weights& norm,
                   float* scratch) const;
  void place_queries(const layer_pass& at, const attention_task& task, std::int64_t first_query, float* scratch) const;
  void attend_rows(const layer_pass& at, const attention_task& task, std::int64_t head, float* scratch) const;
  void open_gates(std::int64_t first_row, int rows, std::int64_t column, std::int64_t columns) const;

  cpu_products& products_;
  const model_config& config_;
  head_shape heads_, wide_heads_;  ///< wide_heads_: of layers that config.is_wide, heads_: of the others
  kv_storage kv_;
  row_angles angles_;
  std::optional<cpu_latent> latent_;
  row_memory q_, mixed_, k_, v_;
  row_memory scratch_;  ///< by thread
  /// All keys are stored before any query is answered: a sequence has many rows, or several tasks read one head's.
  bool stores_first_ = false;
};

}  // namespace troupe
