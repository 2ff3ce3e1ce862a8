#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/formats/tensors/tensor.hpp"
#include "model/formats/tensors/weight_codes.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {

/// A row of weights in the numbers that a scheme stores: w = mid + (z - zero point) * scale, per group or per row; of
/// mxfp4 scale * e2m1[z].
struct coded_row {
  std::vector<std::uint8_t> z;  // [padded ins], zero code where padded
  std::vector<float> scales;    // [groups]
  std::vector<float> mids;      // [groups] where has_mids
};

/// Quantizes a row; `kind` is one of the integer schemes.
void encode_row(scheme kind, const float* row, std::int64_t ins, coded_row& to);
/// The scheme that has a type's numbers as they are: q8 for GGUF's Q8_0, q4 for Q4_0, u4g32 for Q4_K and Q4_1, mxfp4
/// for MXFP4; none for others. Of u4g32 scales and mids are rounded when they are put into a matrix, to f16.
std::optional<scheme> scheme_of_blocks(dtype type);
/// Likewise of codes that another program wrote: q4, u4g32 or mxfp4, u8 or u8g64; none where groups fit no scheme's.
std::optional<scheme> scheme_of_codes(const weight_codes& codes);
/// A row of such a tensor, and of such codes.
void copy_gguf_row(dtype type, const std::byte* row, std::int64_t ins, coded_row& to);
void copy_codes(const weight_codes& codes, std::int64_t out, coded_row& to);

}  // namespace troupe
