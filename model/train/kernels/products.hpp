#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "base/aligned_buffer.hpp"
#include "model/ops/compute.hpp"
#include "model/ops/matmul.hpp"
#include "model/ops/rows.hpp"
#include "model/train/kernels/train_kernels.hpp"

namespace troupe {

/// Rows of activations and gradients: padded as every operation wants it, and never a power of two apart, which would
/// bring neighbouring rows into the same few lines of the cache.
constexpr std::int64_t train_stride(std::int64_t n) {
  return padded_row(n) + 16;
}

/// A matrix of a model in training: packed as serving has it and frozen, or plain floats that change.
struct trained_matrix {
  matrix_view packed;             ///< where values is nullptr
  const float* values = nullptr;  ///< [outs, stride]
  float* gradient = nullptr;      ///< likewise
  std::int64_t outs = 0, ins = 0, stride = 0;
};

/// The right factor of a product.
struct operand {
  enum class kind : std::uint8_t { rows, columns, packed, packed_transposed };
  kind layout = kind::rows;
  const_float_rows values = {};  ///< rows: [depth, stride]; columns: [columns, stride]
  matrix_view w = {};            ///< packed: depth is its inputs, columns its outputs; packed_transposed: the other way
};
inline operand as_rows(const_float_rows values) {
  return {operand::kind::rows, values, {}};
}
inline operand as_columns(const_float_rows values) {
  return {operand::kind::columns, values, {}};
}

struct product_args {
  std::int64_t rows = 0, columns = 0, depth = 0;
  const_float_rows a = {};  ///< [rows, depth], or [depth, rows] where transposed
  bool a_transposed = false;
  operand b = {};
  float_rows c = {};
  float factor = 1.0f;
  into how = into::set;
};

/// How products with quantized weights are computed.
///   as_served  forward in int8 as serving computes it, backward in 16 bits
///   fine       inputs in 16 bits, the same backward where a scheme allows it
///   exact      in f32 with the weights that the scheme stands for
enum class train_precision : std::uint8_t { as_served, fine, exact };
train_precision precision_from_name(std::string_view name);  ///< "served", "fine" or "exact"
std::string_view name_of(train_precision precision);

/// Products of large matrices by all threads. The order of every sum is fixed by the shapes alone.
/// Owns working memory; one thread calls it.
class products {
 public:
  products(const compute& with, train_precision precision, std::int64_t most_rows, std::int64_t most_width);

  void multiply(const product_args& args);
  /// y = x W^T for matrices that share their input; x is padded to 64 with zeros.
  struct output {
    const trained_matrix* w;
    const float* bias;  ///< or nullptr
    float_rows y;
    into how = into::set;
  };
  void forward(const_float_rows x, std::int64_t rows, std::span<const output> outputs);
  /// dx = dy W
  void backward(const_float_rows dy, std::int64_t rows, const trained_matrix& w, float_rows dx, into how);

 private:
  static constexpr std::int64_t depth_at_once = 256, columns_at_once = 64;
  /// Some outputs of a matrix.
  struct some_outs {
    const matrix_view& w;
    std::int64_t first, count;
  };
  void multiply_block(const product_args& args, std::int64_t row, std::int64_t rows, std::int64_t column, int thread);
  void fill_panels(const operand& b, const fill_args& part) const;
  void forward_floats(const_float_rows x, std::int64_t rows, const output& o);
  void quantize_scaled(const_float_rows dy, std::int64_t rows, const some_outs& outs);
  void backward_u8(const_float_rows dy, std::int64_t rows, const matrix_view& w, float_rows dx, into how);
  /// Of dx, the columns from first_in on.
  void turned_product(const some_outs& outs, std::int64_t first_in, std::int64_t rows, float_rows dx, into how,
                      int thread);

  compute with_;
  const train_kernel_table& kernels_;
  train_precision precision_;
  std::int64_t row_width_;
  aligned_buffer<float> panels_;  // [threads][depth_at_once * columns_at_once]
  quantized_rows inputs_;
  aligned_buffer<float> rows_scratch_;  // [threads][row_width]
  aligned_buffer<std::byte> turned_;    // [threads]
  aligned_buffer<float> constants_;     // [rows]
  aligned_buffer<float> ones_, zeros_;  // scales and mids of weights that have none
};

}  // namespace troupe
