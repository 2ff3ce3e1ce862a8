#include "model/formats/mxfp4.hpp"

#include <array>
#include <bit>

#include "base/error.hpp"

namespace troupe {
namespace {

std::int64_t file_row(const weight_codes& codes, std::int64_t out) {
  return codes.first_row + out * codes.row_step;
}

}  // namespace

std::optional<weight_codes> find_mxfp4(const tensor_set& set, const std::string& stem, const mxfp4_rows& which,
                                       std::int64_t outs, std::int64_t ins) {
  const std::string blocks_name = stem + "_blocks", scales_name = stem + "_scales";
  const tensor_view *blocks = set.find(blocks_name), *scales = set.find(scales_name);
  if (!blocks) return std::nullopt;
  if (!scales) refuse("{}: tensor \"{}\" needs \"{}\" beside it", set.file_of(*blocks), blocks_name, scales_name);
  const auto expect = [&](const std::string& name, const tensor_view& tensor, const std::vector<std::int64_t>& shape) {
    if (tensor.type != dtype::u8 || tensor.shape != shape || ins % mxfp4_group != 0)
      refuse("{}: tensor \"{}\", {} {}, should be U8 {} for {} matrices of [{}, {}] in MXFP4", set.file_of(tensor),
             name, name_of(tensor.type), text_of(tensor.shape), text_of(shape), which.matrices, which.rows, ins);
  };
  const std::int64_t groups = ins / mxfp4_group;
  expect(blocks_name, *blocks, {which.matrices, which.rows, groups, mxfp4_group / 2});
  expect(scales_name, *scales, {which.matrices, which.rows, groups});
  return weight_codes{.layout = code_layout::e2m1,
                      .outs = outs,
                      .ins = ins,
                      .groups = groups,
                      .group = mxfp4_group,
                      .first_row = which.matrix * which.rows + which.first,
                      .row_step = which.step,
                      .codes = *blocks,
                      .scales = *scales};
}

void read_mxfp4_codes(const weight_codes& codes, std::int64_t out, std::uint8_t* to) {
  const auto bytes = codes.codes.data.subspan(static_cast<std::size_t>(file_row(codes, out) * codes.ins / 2));
  for (std::int64_t i = 0; i < codes.ins; ++i) {
    const auto pair = std::to_integer<std::uint8_t>(bytes[static_cast<std::size_t>(i / 2)]);
    to[i] = static_cast<std::uint8_t>(i % 2 == 0 ? pair & 15 : pair >> 4);
  }
}

void read_mxfp4_row(const weight_codes& codes, std::int64_t out, float* to) {
  std::vector<std::uint8_t> row(static_cast<std::size_t>(codes.ins));
  read_mxfp4_codes(codes, out, row.data());
  for (std::int64_t i = 0; i < codes.ins; ++i)
    to[i] = mxfp4_scale(codes, out, i / mxfp4_group) *
            (0.5f * static_cast<float>(doubled_mxfp4(row[static_cast<std::size_t>(i)])));
}

/// 2^(e - 127), where 0xff is no number.
float mxfp4_scale(const weight_codes& codes, std::int64_t out, std::int64_t group) {
  const std::int64_t at = file_row(codes, out) * codes.groups + group;
  const auto bits = std::to_integer<std::uint32_t>(codes.scales.data[static_cast<std::size_t>(at)]);
  return std::bit_cast<float>(bits == 0 ? 1u << 22 : bits == 0xff ? 0x7fc00000u : bits << 23);
}

int doubled_mxfp4(std::uint8_t code) {
  constexpr std::array<int, 8> magnitudes{0, 1, 2, 3, 4, 6, 8, 12};
  const int magnitude = magnitudes[code & 7];
  return code & 8 ? -magnitude : magnitude;
}

}  // namespace troupe
