// The ops of one pass on a device. All pointers are the device's. An op puts its kernels on a stream and returns: it
// takes no memory, waits for nothing and decides nothing by what lies on the device, so a pass can be captured as a
// graph.
//
// What a pass only reads (weights, factors and their table, places, tiles, angles) is there before its first kernel:
// kernels may read it while the one before them still runs.
//
// Promise 1: what an op makes of a row depends on that row and on the shapes of the weights alone. How many rows there
// are only decides which kernel runs, and all of them add in the same order, or whole numbers.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "base/blocks.hpp"
#include "model/ops/cuda/device.hpp"
#include "model/ops/kernels.hpp"
#include "model/ops/rows.hpp"

namespace troupe::cuda {

/// The rows that a buffer holds, padded.
inline float_rows rows_of(const device_buffer<float>& buffer, std::int64_t columns) {
  return {buffer.data(), padded_row(columns)};
}

// ---- rows as weights want them ----

/// Rows of inputs as matmul reads them, each padded to padded_row(n) with zeros: as integers for integer weights (see
/// quantized_view, but [rows, padded]), as bf16 for bf16 weights. A part that is null is not made.
struct row_codes {
  std::int8_t* q = nullptr;            ///< [rows, padded]
  float* scales = nullptr;             ///< [rows]
  std::int32_t* sums = nullptr;        ///< [rows]
  std::int32_t* group_sums = nullptr;  ///< [rows, padded / 32]
  std::uint16_t* bf16 = nullptr;       ///< [rows, padded]

  /// Of this row of n inputs and those behind it.
  row_codes from(std::int64_t row, std::int64_t n) const;
};

/// Memory for the codes of a pass, taken once.
class coded_rows {
 public:
  coded_rows() = default;
  coded_rows(std::int64_t most_rows, std::int64_t most_ins, bool integers = true, bool bf16 = true);
  /// The parts that weights of these schemes read, or of one.
  row_codes view(bool integers, bool bf16) const;
  row_codes view(scheme kind) const { return view(is_integer(kind), kind == scheme::bf16); }

 private:
  device_buffer<std::int8_t> q_;
  device_buffer<float> scales_;
  device_buffer<std::int32_t> sums_, group_sums_;
  device_buffer<std::uint16_t> bf16_;
};

/// codes = x
void encode(const stream& on, float_rows x, int rows, std::int64_t n, const row_codes& codes);

// ---- ops on rows; each makes codes of what it writes, too ----
//
// Rows begin at multiples of 16 bytes, and so do vectors; all can be read up to a multiple of four elements. Norms and
// activations whose `out` is null make codes alone.

constexpr std::int64_t most_row_values = 65536;  ///< that a block of threads holds of a row

/// hidden = the table's rows of these tokens * factor (+ the learned vectors of their positions). A token below 0 gives
/// zeros.
struct embed_args {
  matrix_view table = {};
  float factor = 1;
  int rows = 0;
  const std::int32_t* tokens = nullptr;  ///< [rows]
  const float* learned = nullptr;        ///< [positions, learned_stride]; null: none
  std::int64_t learned_stride = 0;
  const std::int32_t* positions = nullptr;  ///< [rows], for learned
  float_rows out = {};
};
void embed(const stream& on, const embed_args& args);

struct norm_args {
  int rows = 0;
  std::int64_t n = 0;
  float_rows x = {};
  const std::int32_t* gather = nullptr;  ///< [rows]: out's row i is made of x's row gather[i]; null: of row i
  const float* weight = nullptr;         ///< [n]
  const float* bias = nullptr;           ///< [n], of layer_norm
  float eps = 0;
  float_rows out = {};
  row_codes codes = {};
  float_rows before = {};  ///< out = before + the norm, and no codes are made; may be out. Null: the norm alone
};
void rms_norm(const stream& on, const norm_args& args);
void layer_norm(const stream& on, const norm_args& args);

struct activation_args {
  int rows = 0;
  std::int64_t n = 0;
  float_rows gate = {};  ///< of swiglu and geglu
  float_rows x = {};
  float_rows out = {};  ///< may be x
  row_codes codes = {};
  const std::int32_t* wanted =
      nullptr;  ///< [rows], of what has gates: rows where it is below 0 are left out; null: none are
};
void swiglu(const stream& on, const activation_args& args);     ///< silu(gate) * x
void geglu(const stream& on, const activation_args& args);      ///< gelu(gate) * x
void gelu_tanh(const stream& on, const activation_args& args);  ///< gelu(x)

// ---- products ----

/// y = x W^T (+ bias) (+ y), padded outputs included. W lies as on the host; bf16 weights multiply inputs rounded to
/// bf16.
struct product {
  matrix_view w = {};
  float_rows y = {};
  const float* bias = nullptr;  ///< [padded outs]
  bool accumulate = false;
};
class library_products;
/// What some products share.
struct product_inputs {
  int rows = 0;
  float_rows x = {};                    ///< for f32 weights
  row_codes codes = {};                 ///< for the others
  float* scratch = nullptr;             ///< matmul_scratch_floats(); null: slices are never shared out
  library_products* library = nullptr;  ///< for very many rows of u8; null: our own kernels multiply those, too
};
/// Working memory that lets the slices of few tiles be shared out over a device.
std::int64_t matmul_scratch_floats();
constexpr std::size_t most_products = 3;  ///< that share inputs
void matmul(const stream& on, std::span<const product> products, const product_inputs& inputs);

/// What matmul and then swiglu or geglu make of a gate and up, to the bit, of which nothing else is written.
struct gated_product {
  product gate = {}, up = {};  ///< without y
  bool is_gelu = false;        ///< else silu
  float_rows out = {};
  std::uint16_t* bf16 = nullptr;  ///< [rows, padded]: codes instead of out; not where those of the inputs lie
};
/// Whether that can be done, and so many rows are worth it.
bool can_multiply_gated(const gated_product& products, int rows);
void multiply_gated(const stream& on, const gated_product& products, const product_inputs& inputs);

// ---- adapters ----

/// One linear layer's factors, as factor_view lays them out. a == nullptr: the adapter has none here.
struct lora_factors {
  const std::byte* a = nullptr;
  const std::byte* b = nullptr;
  const float* scales = nullptr;  ///< [rank]
  std::int32_t rank = 0;
  std::int32_t a_ins = 0;  ///< of A as it is stored
  factor_kind a_kind = factor_kind::f32;
  factor_kind b_kind = factor_kind::f32;
};

constexpr int lora_tile_rows = 8;
constexpr int small_lora_tile_rows = 4;  ///< where all sequences decode: reads are waited for more than made
/// Neighbouring rows with one adapter, lora_tile_rows at most. Cut runs of rows anywhere: it changes nothing.
struct lora_tile {
  std::int32_t first_row = 0;
  std::int32_t rows = 0;     ///< 0: nothing to do
  std::int32_t adapter = 0;  ///< its place in the table
};

/// y += B (scales * A x) for the products that share x.
struct lora_args {
  const lora_tile* tiles = nullptr;  ///< [tile_count]
  int tile_count = 0;
  int most_tile_rows = lora_tile_rows;  ///< of any tile
  const lora_factors* table = nullptr;  ///< [adapters, table_stride]
  std::int64_t table_stride = 0;        ///< linear layers of the shard
  int most_rank = 0;                    ///< of all adapters in the table
  float_rows x = {};
  std::int64_t ins = 0;
  struct target {
    std::int64_t linear = 0;  ///< its place in a row of the table
    std::int64_t outs = 0;
    float_rows y = {};
  };
  std::array<target, most_products> targets = {};
  int target_count = 0;
  float* between = nullptr;  ///< lora_between_floats(rows, most_rank)
};
/// Floats of working memory for a pass of so many rows.
std::int64_t lora_between_floats(int rows, int most_rank);
void lora(const stream& on, const lora_args& args);

// ---- keys and values ----

constexpr int most_head_dim = 256;  ///< that the kernels know

/// One kv head's part of a block on the device: keys [16][padded dim], then values [16][padded dim]; for i8 the scales
/// of the keys [16] and of the values [16] behind them, in f32. A multiple of 64.
constexpr std::int64_t device_kv_head_bytes(kv_kind kind, std::int64_t head_dim) {
  const std::int64_t elements = rounded_up(head_dim, 16) * block_tokens * 2;
  return kind == kv_kind::i8 ? elements + 2 * block_tokens * 4 : elements * (kind == kv_kind::f16 ? 2 : 4);
}

/// One layer's blocks: [blocks][kv heads][device_kv_head_bytes]. What was never stored is never used.
struct kv_layer {
  kv_kind kind = kv_kind::f16;
  std::byte* data = nullptr;
  int heads = 0;  ///< of keys and values
  int head_dim = 0;

  std::int64_t block_bytes() const { return device_kv_head_bytes(kind, head_dim) * heads; }
};

/// Where the rows of a pass belong, uploaded once a pass.
struct row_places {
  const std::int32_t* sequences = nullptr;  ///< [rows]: which block table
  const std::int32_t* positions = nullptr;  ///< [rows]; below 0: the row only fills the pass up, nothing is stored
  const std::int32_t* tables = nullptr;     ///< [sequences, table_stride]: block ids
  std::int64_t table_stride = 0;
};

/// By which angles a position turns heads: (i, i + pairs) for the first `pairs` numbers of each; what is behind these
/// pairs stays.
struct head_angles {
  const float* cosines = nullptr;  ///< [positions, pairs]; likewise sines
  const float* sines = nullptr;
  int pairs = 0;  ///< 0: nothing turns
};

/// Query and key heads are normalized (where there are weights) and turned, the queries in place; keys and values are
/// stored.
struct place_args {
  int rows = 0;
  row_places places = {};
  kv_layer cache = {};
  int heads = 0;  ///< of queries
  float_rows q = {}, k = {}, v = {};
  const float* q_norm = nullptr;  ///< [head_dim], null: none; likewise k_norm
  const float* k_norm = nullptr;
  float norm_eps = 0;
  head_angles angles = {};
};
void place_heads(const stream& on, const place_args& args);

// ---- attention ----

constexpr int tile_queries = 16;        ///< a query is a row and one of the heads that share a kv head
constexpr int wide_tile_queries = 128;  ///< of tiles for sequences with many rows: keys and values are read less often
constexpr int section_positions = 64;   ///< summed on their own and then joined in order

/// Some queries of one sequence: of its rows times heads, counted row by row, those from first_query on.
struct attention_tile {
  std::int32_t first_row = 0;  ///< of the sequence in the pass
  std::int32_t rows = 0;       ///< of the sequence in the pass; 0: nothing to do
  std::int32_t first_query = 0;
};
/// Tiles that a sequence's rows make: first_query 0, 16, 32 …
constexpr int attention_tiles(int rows, int group) {
  return (rows * group + tile_queries - 1) / tile_queries;
}
/// Whether a sequence should have wide tiles instead: first_query 0, 128, 256 … It decides the speed alone.
constexpr bool wants_wide_tiles(int rows, int group) {
  return rows > 1 && rows * group >= 4 * wide_tile_queries;
}
constexpr int wide_attention_tiles(int rows, int group) {
  return (rows * group + wide_tile_queries - 1) / wide_tile_queries;
}

struct attention_args {
  kv_layer cache = {};
  row_places places = {};                 ///< not written by the pass's kernels: they are read early
  int heads = 0;                          ///< of queries, a multiple of the cache's heads
  const attention_tile* tiles = nullptr;  ///< [tile_count + wide_tile_count], likewise; the wide ones last
  int tile_count = 0;
  std::int64_t window = 0;      ///< 0: all; else only that many positions up to its own
  int positions = 0;            ///< no row's position is so high: the host's bound, which decides how work is shared
  float_rows q = {}, out = {};  ///< [rows, heads * head_dim]
  float* scratch = nullptr;     ///< null: sections are never shared out
  std::int64_t scratch_floats = 0;
  int wide_tile_count = 0;
  int most_queries = tile_queries;  ///< that any tile which is not wide has
  float divisor = 1;                ///< of the scores
  float cap = 0;                    ///< scores become cap * tanh(score / cap); 0: stay as they are
};
/// Working memory that lets few tiles be shared out over sections, some tiles at a time; where it does not hold one,
/// the op takes a tile's sections one by one.
std::int64_t attention_scratch_floats(const kv_layer& cache, int positions);
void attend(const stream& on, const attention_args& args);

// ---- what comes out ----

/// logits = logits * factor, and then no further than the cap from zero: cap * tanh(logits / cap)
struct finish_logits_args {
  int rows = 0;
  std::int64_t n = 0;
  float_rows logits = {};
  float factor = 1;
  float cap = 0;           ///< 0: none
  float_rows slopes = {};  ///< how capped logits change with what they were; null: not made
};
void finish_logits(const stream& on, const finish_logits_args& args);

/// tokens[row] = the first of the largest logits; 0 where none is a number.
struct argmax_args {
  int rows = 0;
  std::int64_t vocabulary = 0;
  float_rows logits = {};
  std::int32_t* tokens = nullptr;  ///< [rows]
  float* scratch = nullptr;        ///< argmax_scratch_floats(rows)
};
std::int64_t argmax_scratch_floats(int rows);
void argmax(const stream& on, const argmax_args& args);

}  // namespace troupe::cuda
