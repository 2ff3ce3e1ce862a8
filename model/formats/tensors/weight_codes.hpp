#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/rounding.hpp"
#include "model/formats/tensors/code_settings.hpp"
#include "model/formats/tensors/tensor.hpp"

namespace troupe {

/// Matrices that other programs quantized: GPTQ, AWQ, compressed-tensors, FP8 and MXFP4 in Hugging Face folders.
///
/// Goals: a code, its scale and its zero point mean here what they meant to who wrote them, to the last bit.
/// Non-goals: how they are stored to compute with (model/arch/stored_scheme.hpp); rotated or sparse weights, codes of
/// other widths than 4 and 8 bits: refused by name.

/// How the codes of [outs, ins] lie.
///   by_input   words [ins / per, outs], inputs from the low bits on: GPTQ
///   shuffled   words [ins, outs / 8], outputs in the order 0 2 4 6 1 3 5 7: AWQ
///   by_output  words [outs, ins / per]: compressed-tensors
///   bytes      [outs, ins], signed
///   floats     [outs, ins] of eight bits each
///   e2m1       bytes [rows, ins / 2] of two floats of four bits each, the first one low: MXFP4 (find_mxfp4)
enum class code_layout : std::uint8_t { by_input, shuffled, by_output, bytes, floats, e2m1 };

/// Words of 32 bits that so many codes fill.
constexpr std::int64_t words_for(std::int64_t codes, int bits) {
  return ceil_div(codes * bits, 32);
}

/// A matrix of codes: w = scale * (code - zero), or scale * e2m1[code].
struct weight_codes {
  code_layout layout = code_layout::by_input;
  int bits = 4;
  std::int64_t outs = 0;
  std::int64_t ins = 0;
  std::int64_t groups = 1;      ///< of inputs that share a scale
  std::int64_t group = 0;       ///< inputs in each; 0: as groups_of says
  std::int64_t outs_alike = 1;  ///< outputs that share one
  std::int64_t first_row = 0;   ///< of e2m1: the file's row of output 0, and how far that of the next one is
  std::int64_t row_step = 1;
  tensor_view codes = {};
  tensor_view scales = {};
  std::optional<tensor_view> zeros = {};     ///< none: half the codes are negative
  std::vector<std::int32_t> groups_of = {};  ///< [ins], where a group is no run of inputs
  bool zeros_less_one = false;               ///< the file's zero points are one too small

  /// What a row's weights are on: w = mid + scale * (code - half()); of e2m1 scale * e2m1[code]. Not of floats.
  struct line {
    float scale, mid;
  };
  line line_of(std::int64_t out, std::int64_t group) const;
  int half() const { return 1 << (bits - 1); }  ///< of what codes reach
  /// The code that means 0.
  int zero_of(std::int64_t out, std::int64_t group) const;
  /// The codes of a row, [ins]. Not of floats.
  void read_codes(std::int64_t out, std::uint8_t* to) const;
  /// A row's weights, [ins].
  void read_row(std::int64_t out, float* to) const;
};

/// The codes of the matrix [outs, ins] that the settings' writer keeps in place of the tensor `name` ("….weight");
/// none where `name` is there as plain numbers. Refuses what does not fit together.
std::optional<weight_codes> find_codes(const tensor_set& set, const std::string& name, std::int64_t outs,
                                       std::int64_t ins, const code_settings& settings);

/// Which rows of which matrix of several have the outputs that are wanted.
struct mxfp4_rows {
  std::int64_t matrices, rows, matrix;
  std::int64_t first = 0, step = 1;
};
/// The codes of a matrix [outs, ins] among the rows of one of several, which `stem`_blocks [matrices, rows, groups, 16]
/// and `stem`_scales [matrices, rows, groups] have in MXFP4, as gpt-oss's experts; none where there are no such
/// tensors. Refuses what does not fit together.
std::optional<weight_codes> find_mxfp4(const tensor_set& set, const std::string& stem, const mxfp4_rows& which,
                                       std::int64_t outs, std::int64_t ins);

}  // namespace troupe
