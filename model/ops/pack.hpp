#pragma once
#include <cstddef>
#include <cstdint>

#include "model/ops/coded_row.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {

/// Writes rows of a matrix into its packed form at `data`, which holds packed_bytes(kind, outs, ins).total() zero
/// bytes. Different rows may be written by different threads if they lie in different blocks of 16.
class matrix_packer {
 public:
  matrix_packer(scheme kind, std::int64_t outs, std::int64_t ins, std::byte* data);
  void put(std::int64_t out, const float* row);      ///< for f32 and bf16
  void put(std::int64_t out, const coded_row& row);  ///< for integer schemes

 private:
  scheme kind_;
  std::int64_t ins_;
  std::int64_t groups_;
  std::byte* weights_;
  std::byte* scales_;
  std::byte* mids_;
};

/// Row `out` of a packed matrix as floats, [ins]: what an embedding looks up.
void unpack_row(const matrix_view& w, std::int64_t out, float* to);

}  // namespace troupe
