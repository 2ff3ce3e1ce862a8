// The functions of training that exist once per instruction set, as model/ops/kernels.hpp has those of serving.
// Rows are padded to 16 floats with zeros, and stay so.
#pragma once
#include <cstdint>

#include "model/ops/kernels.hpp"
#include "model/ops/matrix.hpp"
#include "model/ops/rows.hpp"
#include "model/train/dropout.hpp"

namespace troupe {

constexpr std::int64_t panel_columns = 32;  ///< of the right factor, side by side for one input

/// c = factor * a b: a [rows, depth], b [depth, columns]. Each element's sum runs over the depth in
/// order.
struct multiply_args {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const_float_rows a = {};
  bool a_transposed = false;                ///< a lies as [depth, rows]
  const_float_rows b = {};                  ///< panels of 32 columns: [panel][depth][stride]
  std::int64_t panel_step = panel_columns;  ///< from panel to panel; as it is for a b that lies in plain rows
  float_rows c = {};                        ///< columns are padded to 16 in c and in b
  float factor = 1.0f;
  into how = into::set;
};

/// Part of a packed matrix as floats, in panels of 32 columns: [panel][depth][32].
struct fill_args {
  matrix_view w;
  bool transposed = false;                     ///< depth runs over outputs and columns over inputs; else the other way
  std::int64_t first_depth = 0, depth = 0;     ///< first_depth is a multiple of 16
  std::int64_t first_column = 0, columns = 0;  ///< likewise
  float* to = nullptr;
};

/// The step of AdamW for one value: see model/train/optimizer.hpp.
struct adam_args {
  float beta1, beta2, epsilon;
  float rate;             ///< over 1 - beta1^t
  float root_correction;  ///< sqrt(1 - beta2^t)
  float keep;             ///< 1 - rate * weight decay
  float gradient_factor;  ///< clipping
};

struct train_kernel_table {
  void (*multiply)(const multiply_args&);
  void (*fill)(const fill_args&);
  /// to [columns, to_stride] = from [rows, from_stride] turned over; rows that lack to the next 16 become zeros.
  void (*transpose)(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns, float* to,
                    std::int64_t to_stride);
  /// Bytes 16 outputs x n inputs as a packed u8 matrix has them, turned over into one of n outputs.
  void (*turn_bytes)(const std::uint8_t* from, std::int64_t inputs, std::uint8_t* to, std::int64_t to_block_bytes);
  /// dx += what dy means for the norm's input; dw and db, where given, += what it means for the weights.
  void (*rms_norm_back)(const float* x, const float* w, const float* dy, std::int64_t n, float eps, float* dx,
                        float* dw);
  void (*layer_norm_back)(const float* x, const float* w, const float* dy, std::int64_t n, float eps, float* dx,
                          float* dw, float* db);
  /// dy: of the product; becomes that of `up`, and gate that of itself.
  void (*swiglu_back)(const float* dy, std::int64_t n, float* gate, float* up);
  void (*clamped_swiglu_back)(const float* dy, std::int64_t n, float limit, float slope, float* gate, float* up);
  void (*geglu_back)(const float* dy, std::int64_t n, float* gate, float* up);
  void (*gelu_back)(const float* dy, std::int64_t n, float* x);  ///< x becomes its gradient
  /// s [first, last) becomes the softmax of factor * s; the rest of [from, to) 0. `sink`: one more score, as it is,
  /// which takes its share for nothing; minus infinity: none.
  void (*softmax)(float* s, std::int64_t from, std::int64_t first, std::int64_t last, std::int64_t to, float factor,
                  float sink);
  /// dp [from, to) becomes the gradient of the scores that made p.
  void (*softmax_back)(const float* p, float* dp, std::int64_t from, std::int64_t to, float factor);
  /// Logits of a row become factor * (softmax - one at the target). Gives sum e^(x - most) and whether greedy takes the
  /// target.
  struct cross_entropy_result {
    float sum, most, target;
    bool leads;
  };
  cross_entropy_result (*cross_entropy)(float* logits, std::int64_t n, std::int64_t target, float factor);
  void (*adam)(const adam_args&, std::int64_t n, const float* gradient, float* value, float* first, float* second);
  double (*sum_of_squares)(const float* x, std::int64_t n);
  double (*dot)(const float* x, const float* y, std::int64_t n);
  /// x becomes cap * tanh(factor * x / cap), and slopes how that changes with x.
  void (*cap)(float* x, std::int64_t n, float factor, float cap, float* slopes);
  void (*scale)(const float* x, const float* by, std::int64_t n, float* out);  ///< element by element
  /// out = x where it is kept, over 1 - probability; 0 elsewhere. May be the same.
  void (*drop)(const dropout_key& key, std::int64_t row, const float* x, std::int64_t n, float* out);
};

/// Those of the same instruction set.
const train_kernel_table& train_kernels_like(const kernel_table& kernels);

}  // namespace troupe
