// What training computes on a device besides the ops of a pass (ops.hpp), by the same rules: all pointers are the
// device's, an op puts its kernels on a stream and returns. The shapes decide the order of every sum, never the order
// in which threads finish.
#pragma once
#include <cstdint>

#include "model/ops/cuda/ops.hpp"
#include "model/ops/dropout.hpp"

namespace troupe::cuda {

// ---- products ----

/// y = x W^T (+ bias), or turned: dx = dy W.
struct weight_product {
  matrix_view w = {};
  bool turned = false;
  int rows = 0;
  const_float_rows x = {};
  float_rows y = {};
  const float* bias = nullptr;  ///< [padded outs]
  into how = into::set;
};
/// With the weights that the scheme stands for, in f32.
void multiply_exact(const stream& on, const weight_product& args);
/// On tensor cores, with sums in f32: rows and weights are rounded to bf16, or to a sum of two bf16 where `terms` is 2.
/// Weights in f32 are multiplied as they are.
void multiply_rounded(const stream& on, const weight_product& args, int terms);

/// A matrix that lies as it is said, or turned over: its columns as rows.
struct float_factor {
  const float* data = nullptr;
  std::int64_t stride = 0;
  bool turned = false;
};
constexpr float_factor factor_of(const_float_rows x, bool turned = false) {
  return {x.data, x.stride, turned};
}
/// c = factor * a b: a [rows, depth], b [depth, columns].
struct float_product {
  std::int64_t rows = 0, columns = 0, depth = 0;
  float_factor a = {}, b = {};
  float_rows c = {};
  float factor = 1;
  into how = into::set;
};
constexpr std::int64_t product_scratch_floats = 128 * 64 * 64;
/// Few tiles and a great depth: slices of it are summed by themselves, in `scratch`, and added in order.
void multiply(const stream& on, const float_product& args, float* scratch);

// ---- attention within examples ----

/// The rows of an example: [first, first + rows) of the pass.
struct segment {
  std::int32_t first = 0, rows = 0;
};

/// Heads of all rows: head h has what lies from data + h / share * step on, rows `stride` apart.
struct head_rows {
  float* data = nullptr;
  std::int64_t stride = 0, step = 0;
  int share = 1;
};

enum class head_shape : std::uint8_t {
  scores,  ///< c [queries, keys] = a [queries, dim] b [keys, dim]^T; not of all keys that a query does not see
  mixed,   ///< c [queries, dim] = a [queries, keys] b [keys, dim]
  given    ///< c [keys, dim] = a [queries, keys]^T b [queries, dim]
};
/// A product of each example's rows and each head. In `a`, keys that a query does not see are zeros up to the end of
/// the 64 keys around its own position; later ones are never read.
struct head_product {
  head_shape shape = head_shape::scores;
  const segment* segments = nullptr;
  int segment_count = 0;
  int longest = 0;  ///< rows of a segment
  int heads = 0, dim = 0;
  head_rows a = {}, b = {}, c = {};
  into how = into::set;
  /// What is given is the sum, in order, over so many heads of a and b, which lie so far apart.
  int members = 1;
  std::int64_t a_member = 0, b_member = 0;
};
void multiply_heads(const stream& on, const head_product& args);
/// On tensor cores, with sums in f32 of factors that are rounded to bf16. Of `mixed` and `given`, `a` lies in bf16:
/// each row where its floats would begin, as softmax_rounded leaves it.
void multiply_heads_rounded(const stream& on, const head_product& args);

struct softmax_args {
  int rows = 0, heads = 0;
  const std::int32_t* positions = nullptr;  ///< [rows], within the example
  std::int64_t window = 0;                  ///< 0: all; else only that many keys up to its own
  float factor = 1;                         ///< of the scores
  head_rows scores = {};                    ///< become probabilities
  head_rows gradients = {};                 ///< of softmax_back: of the probabilities; become those of the scores
  head_rows slopes = {};                    ///< of softmax_back: multiply these in place of the factor; null: none do
};
/// Scores become cap * tanh(factor * score / cap), and slopes how that changes with them.
void cap_scores(const stream& on, const softmax_args& args, float cap);
void softmax(const stream& on, const softmax_args& args);
void softmax_back(const stream& on, const softmax_args& args);
/// The same, but what comes out is rounded to bf16, and each row of it begins where its floats began. Probabilities lie
/// in this way for the way back, too.
void softmax_rounded(const stream& on, const softmax_args& args);
void softmax_back_rounded(const stream& on, const softmax_args& args);

/// Heads are normalized (where there are weights) and turned.
struct turn_args {
  int rows = 0, heads = 0, dim = 0;
  const std::int32_t* positions = nullptr;
  float_rows x = {};
  const float* norm = nullptr;  ///< [dim]
  float eps = 0;
  head_angles angles = {};
  float_rows out = {};  ///< of turn_heads_back: the gradient of what came out, becomes that of x
};
void turn_heads(const stream& on, const turn_args& args);
void turn_heads_back(const stream& on, const turn_args& args);

// ---- rows ----

/// dx += what dy means for the norm's input.
struct norm_back_args {
  int rows = 0;
  std::int64_t n = 0;
  float_rows x = {};
  const std::int32_t* gather = nullptr;  ///< as norm_args has it, for x and dx; no row twice
  const float* weight = nullptr;
  float eps = 0;
  float_rows dy = {}, dx = {};
};
void rms_norm_back(const stream& on, const norm_back_args& args);
void layer_norm_back(const stream& on, const norm_back_args& args);

/// `dy` is the gradient of what the activation made; gate and x become their own gradients.
struct activation_back_args {
  int rows = 0;
  std::int64_t n = 0;
  float_rows dy = {};
  float_rows gate = {};  ///< of swiglu and geglu
  float_rows x = {};
};
void swiglu_back(const stream& on, const activation_back_args& args);
void geglu_back(const stream& on, const activation_back_args& args);
void gelu_back(const stream& on, const activation_back_args& args);

/// Drawn as on the processor (model/train/kernels/dropout_kernels.cpp).
struct dropout_args {
  dropout_key mask = {};
  int rows = 0;
  std::int64_t n = 0;
  float_rows x = {}, out = {};  ///< may be the same
  into how = into::set;
};
void drop(const stream& on, const dropout_args& args);

/// Logits of a row become factor * (softmax - one at the target).
struct cross_entropy_result {
  float sum = 0, most = 0, target = 0;  ///< of e^(x - most); the largest logit; the target's
  std::int32_t leads = 0;               ///< whether the target's is the largest
};
struct cross_entropy_args {
  int rows = 0;
  std::int64_t n = 0;
  float_rows logits = {};
  const std::int32_t* targets = nullptr;  ///< [rows]
  float factor = 1;
  cross_entropy_result* results = nullptr;  ///< [rows]
  float_rows slopes = {};                   ///< multiply what the logits become; null: none do
};
void cross_entropy(const stream& on, const cross_entropy_args& args);

}  // namespace troupe::cuda
