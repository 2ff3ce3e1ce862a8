// The functions of training that exist once per instruction set, as model/ops/kernels.hpp has those of serving.
// Rows are padded to 16 floats with zeros, and stay so.
#pragma once
#include <cstdint>

#include "model/ops/dropout.hpp"
#include "model/ops/kernels.hpp"
#include "model/ops/matrix.hpp"
#include "model/ops/rows.hpp"

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

/// The step of AdamW for one value: see model/train/run/optimizer.hpp.
struct adam_args {
  float beta1, beta2, epsilon;
  float rate;             ///< over 1 - beta1^t
  float root_correction;  ///< sqrt(1 - beta2^t)
  float keep;             ///< 1 - rate * weight decay
  float gradient_factor;  ///< clipping
};

/// The gradients of one row of a head of linear attention (delta_args).
struct delta_back_args {
  std::int64_t key_dim = 0, value_dim = 0;
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  float decay = 0, beta = 0, skip = 0;
  const float* state = nullptr;                        ///< before the row
  const float* out_gradient = nullptr;                 ///< [value_dim]
  float* state_gradient = nullptr;                     ///< of the state behind the row; becomes that of `state`
  float *q_gradient = nullptr, *k_gradient = nullptr;  ///< are added to
  float *v_gradient = nullptr, *decay_gradient = nullptr, *beta_gradient = nullptr;
  float* scratch = nullptr;  ///< [3][key_dim][16]
};

/// Of a convolution that begins with a sequence (convolve_args).
struct convolve_back_args {
  convolution_columns columns;
  const float* x = nullptr;  ///< [rows, x_stride]: what went in
  std::int64_t x_stride = 0;
  int rows = 0;
  float* gradient = nullptr;  ///< [rows, gradient_stride]: of what came out; becomes that of x
  std::int64_t gradient_stride = 0;
};

/// Of a short convolution that begins with a sequence (short_convolution_args).
struct short_convolution_back_args {
  convolution_columns columns;
  const float *b = nullptr, *c = nullptr, *x = nullptr;  ///< [rows, row_stride]: what went in
  std::int64_t row_stride = 0;
  int rows = 0;
  const float* out_gradient = nullptr;  ///< [rows, out_stride]
  std::int64_t out_stride = 0;
  float *b_gradient = nullptr, *c_gradient = nullptr, *x_gradient = nullptr;  ///< [rows, gradient_stride]
  std::int64_t gradient_stride = 0;
};

/// A row's shares of all heads, and what they are made of (kernel_table::delta_shares, state_space_shares).
struct delta_shares_back_args {
  const float *a = nullptr, *dt_bias = nullptr, *rates = nullptr, *decays = nullptr, *betas = nullptr;
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
  void (*squared_relu_back)(const float* dy, std::int64_t n, float* x);
  void (*delta_rule_back)(const delta_back_args&);
  void (*state_space_back)(const delta_back_args&);
  void (*convolve_back)(const convolve_back_args&);
  void (*short_convolve_back)(const short_convolution_back_args&);
  /// x: what unit_norm was given. The gradient of what it gave becomes that of x.
  void (*unit_norm_back)(const float* x, std::int64_t n, float eps, float factor, float* gradient);
  /// a and b: gradients of decays and betas; become those of a and b.
  void (*delta_shares_back)(const delta_shares_back_args&, std::int64_t n, float* a, float* b);
  /// The same of a state space: a becomes that of a.
  void (*state_space_shares_back)(const delta_shares_back_args&, std::int64_t n, float* a, const float* b);
  /// The gradient of what a gate let through becomes that of what it was given.
  void (*open_gate_back)(const float* gate, const float* opened, std::int64_t n, float* gradient, float* gate_gradient);
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
