// Products of whole numbers by a library that is not ours: cuBLASLt. It is loaded when a decoder is made, so the
// program starts without it; where there is none, our own kernels multiply everything.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "model/ops/cuda/device.hpp"
#include "model/ops/cuda/loaded_library.hpp"

namespace troupe::cuda {

/// sums = inputs weights^T. All on the device, aligned to 256 bytes; ins is a multiple of 64, outs of 16.
struct integer_product {
  const std::int8_t* weights = nullptr;  ///< [outs, ins]
  const std::int8_t* inputs = nullptr;   ///< [rows, ins]
  std::int32_t* sums = nullptr;          ///< [rows, outs]
  std::int64_t outs = 0, ins = 0, rows = 0;
};

/// For the device of the thread that opened it, and for one stream.
class integer_library {
 public:
  integer_library() = default;
  virtual ~integer_library() = default;
  integer_library(const integer_library&) = delete;
  integer_library& operator=(const integer_library&) = delete;

  virtual std::string name() const = 0;
  /// Puts the product on the stream. False where the library does not do it; the sums are then anything.
  virtual bool multiply(const stream& on, const integer_product& p) = 0;
};

/// Throws std::runtime_error, which says what is wrong, where there is no library.
std::unique_ptr<integer_library> open_integer_library();

/// Whether it multiplies a matrix as the processor does, which is known only when it has been tried.
bool is_exact(const stream& on, integer_library& library);

/// Opens the library and tries it.
loaded<integer_library> load_integer_library(const stream& on);

}  // namespace troupe::cuda
