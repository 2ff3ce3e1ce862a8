#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "base/aligned_buffer.hpp"
#include "model/ops/compute.hpp"

namespace troupe {

/// What tiles are like where so many rows are multiplied together.
tile_shape tile_for(const kernel_table& kernels, int rows);

/// At most so many rows of so many inputs.
struct input_room {
  std::int64_t rows, ins;
};

/// Rows of activations as integers (see quantized_view). Memory is taken once, for the largest pass.
class quantized_rows {
 public:
  /// With room for any of these, of `finest` bits.
  quantized_rows(const kernel_table& kernels, std::span<const input_room> rooms, input_bits finest = input_bits::eight);
  quantized_rows(const kernel_table& kernels, std::int64_t most_rows, std::int64_t most_ins,
                 input_bits finest = input_bits::eight)
      : quantized_rows(kernels, std::array{input_room{most_rows, most_ins}}, finest) {}
  /// Rows of a new pass follow, each put once, by any thread.
  void begin(int rows, std::int64_t ins, input_bits bits = input_bits::eight);
  /// The same where they are multiplied apart, in groups that begin at whole tiles.
  void begin_groups(int rows, std::int64_t ins, tile_shape tile);
  /// x: one row, padded to 64 with zeros.
  void put(int row, const float* x);
  /// All rows at once: [rows, stride].
  void assign(thread_pool& pool, const float* x, std::int64_t stride, int rows, std::int64_t ins,
              input_bits bits = input_bits::eight);
  const quantized_view& view() const { return view_; }
  /// Of a group: `first` is a multiple of the tile.
  quantized_view group(int first, int rows) const;

 private:
  const kernel_table& kernels_;
  aligned_buffer<std::int8_t> q_, low_;
  aligned_buffer<std::int16_t> wide_;
  aligned_buffer<float> scales_;
  aligned_buffer<std::int32_t> sums_;
  aligned_buffer<std::int32_t> group_sums_;
  quantized_view view_;
};

/// An adapter beside one of several matmuls.
struct adapted_job {
  std::size_t job = 0;
  low_rank_args adapter;
};

/// Blocks [first, last) of a product, by the kernel for its inputs' tiles.
void multiply_blocks(const kernel_table& kernels, const matmul_args& job, std::int64_t first, std::int64_t last);

/// Runs matmuls that do not depend on each other as one job of the pool. Each output is computed whole by one thread,
/// in an order that the matrix alone decides; whatever makes outputs adds the adapters' part of them.
void matmul(const compute& with, std::span<const matmul_args> jobs, std::span<const adapted_job> adapters = {});

/// The same, without adapters, in plain loops, in double where sums are not exact: what the kernels are compared with.
void matmul_reference(const matmul_args& args);
/// An input as the kernels read it.
std::int32_t integer_at(const quantized_view& q, std::int64_t row, std::int64_t i);

}  // namespace troupe
