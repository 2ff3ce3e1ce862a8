// Products of bf16 by a library that is not ours: cuBLASLt. Only training uses it: promise 1 does not bind training, so
// the library may add in its own order, as long as it is the same order every time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "model/ops/cuda/device.hpp"
#include "model/ops/cuda/loaded_library.hpp"
#include "model/ops/rows.hpp"

namespace troupe::cuda {

/// A matrix that lies as it is said, or turned over: its columns as rows.
struct bf16_factor {
  const std::uint16_t* data = nullptr;
  std::int64_t stride = 0;
  bool turned = false;
};
/// sums = factor * a b, or are added to: a [rows, depth], b [depth, columns]. All on the device; addresses are
/// multiples of 16 bytes, strides of 8.
struct bf16_product {
  std::int64_t rows = 0, columns = 0, depth = 0;
  bf16_factor a = {}, b = {};
  float_rows sums = {};
  std::uint16_t* rounded = nullptr;  ///< in the place of `sums`, with their stride
  float factor = 1;
  into how = into::set;           ///< `rounded` is always set
  const float* before = nullptr;  ///< what is added to, if not `sums`; with their stride
};

/// For the device of the thread that opened it, and for one stream.
class float_library {
 public:
  float_library() = default;
  virtual ~float_library() = default;
  float_library(const float_library&) = delete;
  float_library& operator=(const float_library&) = delete;

  virtual std::string name() const = 0;
  /// Puts the product on the stream, with sums in f32. Throws std::runtime_error where the library does not do it.
  virtual void multiply(const stream& on, const bf16_product& p) = 0;
};

/// Throws std::runtime_error, which says what is wrong, where there is no library.
std::unique_ptr<float_library> open_float_library();

/// Whether it multiplies small matrices rightly, whichever way they lie.
bool is_right(const stream& on, float_library& library);

/// Opens the library and tries it.
loaded<float_library> load_float_library(const stream& on);

}  // namespace troupe::cuda
