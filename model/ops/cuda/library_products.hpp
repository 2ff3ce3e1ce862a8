// Products of very many rows with u8 weights, by a library for whole numbers: weights become rows of int8 in working
// memory, the library multiplies, and a kernel finishes the sums as our own kernels do. So the bits are theirs.
//
// u8 alone: one scale serves a whole row, so all its sums are whole numbers, and any order gives the same. The others'
// sums are floats, after each group or always (bf16), and no library adds those as our kernels do.
#pragma once
#include <memory>

#include "model/ops/cuda/integer_library.hpp"
#include "model/ops/cuda/ops.hpp"

namespace troupe::cuda {

/// By arithmetic alone, for an H200, whose own kernels have no need of it since: unpacking a weight moves 2 bytes,
/// which faster products make up for in some 700 rows; with sums that go out to memory and back, in up to 2,000.
constexpr int least_library_rows = 1024;

/// Some outputs of a product; `first` is a multiple of 16.
product outputs_of(product p, std::int64_t first, std::int64_t outs);

class library_products {
 public:
  /// Takes so much memory twice: for weights and for sums. Each fits into an H200's L2 cache.
  explicit library_products(std::unique_ptr<integer_library> library, std::size_t bytes = std::size_t{32} << 20);

  /// Puts a product on the stream, some outputs at a time. Says how many outputs are done, padded ones included: all,
  /// or fewer where the library did not go on or a piece would be too small.
  std::int64_t multiply(const stream& on, const product& p, const product_inputs& inputs);

 private:
  std::unique_ptr<integer_library> library_;
  device_buffer<std::int8_t> weights_;
  device_buffer<std::int32_t> sums_;
};

}  // namespace troupe::cuda
