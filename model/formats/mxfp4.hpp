#pragma once
#include "model/formats/weight_codes.hpp"

namespace troupe {

/// MXFP4 as gpt-oss has its experts: 32 inputs share an exponent (e8m0), and each is a float of four bits (e2m1).
constexpr std::int64_t mxfp4_group = 32;

/// Which rows of which matrix of several have the outputs that are wanted.
struct mxfp4_rows {
  std::int64_t matrices, rows, matrix;
  std::int64_t first = 0, step = 1;
};
/// The codes of a matrix [outs, ins] among the rows of one of several, which `stem`_blocks [matrices, rows, groups, 16]
/// and `stem`_scales [matrices, rows, groups] have in MXFP4; none where there are no such tensors. Refuses what does
/// not fit together.
std::optional<weight_codes> find_mxfp4(const tensor_set& set, const std::string& stem, const mxfp4_rows& which,
                                       std::int64_t outs, std::int64_t ins);

/// An output's codes, its weights, and the scale of a group.
void read_mxfp4_codes(const weight_codes& codes, std::int64_t out, std::uint8_t* to);
void read_mxfp4_row(const weight_codes& codes, std::int64_t out, float* to);
float mxfp4_scale(const weight_codes& codes, std::int64_t out, std::int64_t group);
/// Twice what a code stands for, which is whole.
int doubled_mxfp4(std::uint8_t code);

}  // namespace troupe
