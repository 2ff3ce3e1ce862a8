// The functions that exist once per instruction set. Everything above calls them through kernels(); matmul.hpp and the
// structs below say what each computes. No standard headers with inline code here: kernel sources are compiled for
// processors that others lack, and the linker might keep their copy of such code for all.
#pragma once
#include <cstdint>

#include "base/blocks.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {

/// How finely inputs become integers.
enum class input_bits : std::uint8_t { eight, sixteen };
constexpr std::int32_t largest_input(input_bits bits) {
  return bits == input_bits::eight ? 127 : 256 * 127 + 127;
}

/// Rows of inputs lie in tiles of some rows, so that a kernel reads them as one stream: of each row `together` inputs,
/// then as many of the next row.
struct tile_shape {
  int rows = 1;
  int together = 4;
};
constexpr int most_tile_rows = 12;       ///< of tiles in 8 bits, but tall ones
constexpr int fine_tile_rows = 6;        ///< of tiles in 16 bits, but tall ones
constexpr tile_shape tall_tile{16, 64};  ///< that kernel_table::tiled_matmul reads

/// Rows of inputs as integers: round(x / scale), at most largest_input. In 8 bits they are q, in 16 bits 256 q + low.
/// q and low are [tiles][ins / together][rows][together], group_sums [tiles][ins / 32][rows], with a tile's rows. Rows
/// past the last are zero. Instruction sets that multiply numbers of 16 bits (kernel_table::wide_inputs) have them in
/// `wide`, in the same order but that of every four the middle two are swapped: beside q in 8 bits, and alone in 16.
struct quantized_view {
  int rows = 0;
  tile_shape tile;
  std::int64_t ins = 0;  ///< padded
  input_bits bits = input_bits::eight;
  const std::int8_t* q = nullptr;
  const std::int8_t* low = nullptr;
  const std::int16_t* wide = nullptr;
  const float* scales = nullptr;             ///< [rows]
  const std::int32_t* sums = nullptr;        ///< [rows], of the whole row
  const std::int32_t* group_sums = nullptr;  ///< of 32 inputs each
};

/// Where a kernel puts a row of them: q, low, wide and group_sums point at the row's tile.
struct quantized_row {
  tile_shape tile;
  int in_tile = 0;
  input_bits bits = input_bits::eight;
  std::int8_t* q = nullptr;
  std::int8_t* low = nullptr;
  std::int16_t* wide = nullptr;
  float* scale = nullptr;
  std::int32_t* sum = nullptr;
  std::int32_t* group_sums = nullptr;
};

/// Memory that is read right after a product, and asked for while the product keeps the processor busy. Used up by it.
struct fetch_list {
  struct piece {
    const std::byte* at = nullptr;
    std::int64_t bytes = 0;
  };
  static constexpr int most = 16;
  piece pieces[most];
  int count = 0;
};

/// y = x W^T (+ bias) (+ y) for some blocks of 16 outputs.
struct matmul_args {
  matrix_view w;
  int rows = 0;
  quantized_view q;          ///< the inputs, for integer schemes
  const float* x = nullptr;  ///< the inputs, for f32 and bf16: [rows, x_stride]
  std::int64_t x_stride = 0;
  float* y = nullptr;  ///< [rows, y_stride], padded outputs included
  std::int64_t y_stride = 0;
  const float* bias = nullptr;                    ///< [padded outs]
  bool accumulate = false;                        ///< add to y
  std::int64_t first_block = 0, last_block = -1;  ///< of 16 outputs, that matmul() makes; -1: to the last
  fetch_list* read_after = nullptr;
};

/// What the numbers of an adapter's factors are kept in: as they are, or divided by what low_rank_args::scales takes
/// back (f16 by a power of two; i8 by a scale for each rank, that is for each output of A and each input of B).
enum class factor_kind : std::uint8_t { f32, f16, i8 };

constexpr std::int64_t bytes_of(factor_kind kind) {
  return kind == factor_kind::f32 ? 4 : kind == factor_kind::f16 ? 2 : 1;
}

/// One factor of an adapter: [block of 16 outputs][input][16].
struct factor_view {
  factor_kind kind = factor_kind::f32;
  std::int64_t outs = 0;
  std::int64_t ins = 0;  ///< a multiple of 4 in A, the rank in B
  const std::byte* weights = nullptr;

  std::int64_t blocks() const { return padded_outs(outs) / outs_per_block; }
  std::int64_t block_bytes() const { return ins * outs_per_block * bytes_of(kind); }
};

constexpr int low_rank_rows = 8;  ///< that a kernel does together

/// The working memory of a pass, and that of GPUs' kernels, is laid out for it.
constexpr std::int64_t most_adapter_rank = 512;

/// y += B (scales * A x) for some rows.
struct low_rank_args {
  factor_view a, b;
  const float* scales = nullptr;  ///< [rank, padded to 16]
  int rows = 0;
  const float* x = nullptr;  ///< [rows, x_stride], zeros behind the inputs
  std::int64_t x_stride = 0;
  float* between = nullptr;  ///< scales * A x: [rows, between_stride], padded to 16
  std::int64_t between_stride = 0;
  float* y = nullptr;  ///< [rows, y_stride], padded outputs included
  std::int64_t y_stride = 0;
  const low_rank_args* next = nullptr;  ///< whose factors are likely to be read after these
};

/// What keys and values are cached in. `i8`: each key and value of a head as integers of at most 127 times a scale.
enum class kv_kind : std::uint8_t { f32, f16, i8 };

constexpr int attention_queries = 8;  ///< that a kernel does together: rows times heads that share keys

/// Of one kv head's part of a block.
constexpr std::int64_t kv_key_elements(std::int64_t head_dim) {
  return rounded_up(head_dim, 2) * block_tokens;
}
constexpr std::int64_t kv_head_bytes(kv_kind kind, std::int64_t head_dim) {
  const std::int64_t elements = kv_key_elements(head_dim) + rounded_up(head_dim, 16) * block_tokens;
  return kind == kv_kind::i8 ? elements + 2 * block_tokens * 4 : elements * (kind == kv_kind::f16 ? 2 : 4);
}

/// Floats that are lent to a kernel: for every position of the blocks, and for every dimension.
constexpr std::int64_t attention_scratch(std::int64_t positions, std::int64_t head_dim) {
  return attention_queries * (rounded_up(positions, block_tokens) + rounded_up(head_dim, 16));
}

/// One sequence's rows against its cached keys and values, for one head of the cache (all query heads that share it).
/// A block holds 16 positions of every kv head: keys [dim][16], then values [16][padded dim]. For i8, keys are
/// [dim / 2][16][2] and values [8][padded dim][2], and behind them lie the keys' scales [16] and the values' in f32.
struct attention_args {
  kv_kind kind = kv_kind::f16;
  const std::byte* cache = nullptr;  ///< this layer's blocks
  std::int64_t block_bytes = 0;      ///< of all kv heads
  std::int64_t head_offset = 0;      ///< of this kv head in a block
  const std::int32_t* block_table = nullptr;
  int head_dim = 0;
  int group = 1;             ///< query heads of this kv head
  const float* q = nullptr;  ///< first row, first query head of the group: [rows, row_stride]
  float* out = nullptr;      ///< likewise
  std::int64_t row_stride = 0;
  int rows = 0;
  std::int64_t first_position = 0;  ///< of the first row; row r sees positions up to first_position + r
  std::int64_t window = 0;          ///< 0: all; else only that many positions up to its own
  float* scratch = nullptr;         ///< attention_scratch floats
  float divisor = 1;                ///< of the scores
  float cap = 0;                    ///< scores become cap * tanh(score / cap); 0: stay as they are
  const float* sinks = nullptr;     ///< [group]: a score of each query head that takes weight for nothing; may be null

  /// The head that this thread is likely to attend next is asked for meanwhile: its blocks, and its place in them.
  const std::int32_t* next_table = nullptr;
  std::int64_t next_blocks = 0;
  std::int64_t next_offset = 0;
};

/// Keys and values of neighbouring positions go into one block of the cache.
struct store_kv_args {
  kv_kind kind = kv_kind::f16;
  std::byte* block = nullptr;  ///< this kv head's part of the block
  int slot = 0;                ///< of the first row: its position in the block
  int rows = 1;                ///< slot + rows <= 16
  int head_dim = 0;
  const float* keys = nullptr;  ///< [rows, row_stride], likewise values
  const float* values = nullptr;
  std::int64_t row_stride = 0;
};

constexpr int most_convolved_rows = 16;

/// Some columns of a convolution over the rows of a sequence: a row has the sum of `kernel` products there, of the rows
/// before it and its own.
struct convolution_columns {
  const float* weights = nullptr;  ///< [kernel, weight_stride], that of the row itself last
  std::int64_t weight_stride = 0;
  const float* bias = nullptr;  ///< [count]: the sums begin with it; may be null
  int kernel = 1;               ///< most_convolved_rows at most
  std::int64_t count = 0;       ///< a multiple of 16
};

/// Each number of a row becomes silu of its sum, in place.
struct convolve_args {
  convolution_columns columns;
  float* x = nullptr;  ///< [rows, row_stride]
  std::int64_t row_stride = 0;
  int rows = 0;
  float* before = nullptr;  ///< [kernel - 1, before_stride]: the rows before, oldest first; in the end the last ones
  std::int64_t before_stride = 0;
};
/// A short convolution between two gates: out = c * the sum of what b * x is in the rows.
struct short_convolution_args {
  convolution_columns columns;
  const float *b = nullptr, *c = nullptr, *x = nullptr;  ///< [rows, row_stride]
  std::int64_t row_stride = 0;
  int rows = 0;
  float* out = nullptr;  ///< [rows, out_stride]
  std::int64_t out_stride = 0;
  float* before = nullptr;  ///< [kernel - 1, before_stride]: b * x of the rows before, as convolve_args has them
  std::int64_t before_stride = 0;
};

/// The gated delta rule of one head over the rows of a sequence: row by row, the state decays; what it says of k is
/// moved towards v, by a share beta; and it is asked for q:
///   S <- decay S;  S <- S + k (beta (v - k S));  out = q S
struct delta_args {
  std::int64_t key_dim = 0, value_dim = 0;  ///< multiples of 16
  int rows = 0;
  const float *q = nullptr, *k = nullptr, *v = nullptr;  ///< [rows, row_stride]
  std::int64_t row_stride = 0;
  const float *decays = nullptr, *betas = nullptr;  ///< [rows, share_stride]
  std::int64_t share_stride = 0;
  float skip = 0;        ///< of a state space
  float* out = nullptr;  ///< [rows, out_stride]
  std::int64_t out_stride = 0;
  float* state = nullptr;  ///< [value_dim / 16][key_dim][16]
};

struct kernel_table {
  const char* isa;
  bool wide_inputs;  ///< quantize makes, and matmul reads, quantized_view::wide
  void (*matmul)(const matmul_args&, std::int64_t first_block, std::int64_t last_block);
  /// The same of inputs in tall tiles, in which such an instruction set has many rows; null: it has no tiles.
  void (*tiled_matmul)(const matmul_args&, std::int64_t first_block, std::int64_t last_block);
  void (*shrink)(const low_rank_args&);                                                     ///< between = scales * A x
  void (*expand)(const low_rank_args&, std::int64_t first_block, std::int64_t last_block);  ///< y += B between
  void (*attend)(const attention_args&);
  void (*store_kv)(const store_kv_args&);
  void (*convolve)(const convolve_args&);
  void (*short_convolve)(const short_convolution_args&);
  void (*delta_rule)(const delta_args&);
  /// A state space, of which nothing is corrected, and a share of v comes beside what the state answers:
  ///   S <- decay S;  S <- S + k (beta v);  out = q S + skip v
  void (*state_space)(const delta_args&);
  /// What a row's heads decay and learn by: a becomes e^(-rate softplus(a + dt_bias)), b its sigmoid. n: padded to 16.
  void (*delta_shares)(float* a, float* b, const float* dt_bias, const float* rates, std::int64_t n);
  /// The same of a state space: b becomes the step softplus(a + dt_bias), and a e^(-rate b).
  void (*state_space_shares)(float* a, float* b, const float* dt_bias, const float* rates, std::int64_t n);
  /// x over its length: x *= factor / sqrt(x x + eps); n is a multiple of 16.
  void (*unit_norm)(float* x, std::int64_t n, float eps, float factor);
  /// x *= sigmoid(gate); what lies behind the n is left alone.
  void (*open_gate)(const float* gate, std::int64_t n, float* x);

  /// x and out are padded to 16 with zeros, n is the true length.
  void (*rms_norm)(const float* x, const float* weight, std::int64_t n, float eps, float* out);
  /// `bias` may be null.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, std::int64_t n, float eps, float* out);
  void (*swiglu)(const float* gate, const float* up, std::int64_t n, float* out);  ///< silu(gate) * up
  void (*geglu)(const float* gate, const float* up, std::int64_t n, float* out);   ///< gelu_tanh(gate) * up
  /// gate sigmoid(slope gate) (up + 1), with gate at most `limit` and up between -limit and limit
  void (*clamped_swiglu)(const float* gate, const float* up, std::int64_t n, float limit, float slope, float* out);
  void (*gelu_tanh)(const float* x, std::int64_t n, float* out);
  void (*squared_relu)(const float* x, std::int64_t n, float* out);  ///< max(x, 0) squared
  void (*add)(const float* x, std::int64_t n, float* into);
  void (*multiply)(float* x, std::int64_t n, float by);
  void (*cap)(float* x, std::int64_t n, float most);  ///< most * tanh(x / most)
  /// Turns each pair (x[i], x[i + turned / 2]) of each head by its angle; behind `turned` a head stays as it is.
  void (*rotate)(float* x, std::int64_t heads, std::int64_t dim, std::int64_t turned, const float* cosines,
                 const float* sines);
  void (*quantize)(const float* x, std::int64_t padded, const quantized_row& into);
  /// out = e^(x - most), 0 below -87; the sum of all in the fixed order.
  float (*exponentials)(const float* x, std::int64_t padded, float most, float* out);
  /// Integer dot products that keep the processor busy, for `bench limits`: returns operations done.
  std::int64_t (*spin_int8)(std::int64_t rounds);
  std::int64_t (*spin_int4)(std::int64_t rounds);  ///< of nibbles with int8
  std::int64_t (*spin_fma)(std::int64_t rounds);
  std::int64_t (*read)(const std::byte* data, std::int64_t bytes);
};

}  // namespace troupe
