#include "model/ops/pack.hpp"

#include <bit>

#include "base/half.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

float factor_at(scheme kind, const std::byte* factors, std::int64_t index) {
  if (factor_bytes(kind) == 1) return std::bit_cast<float>(std::to_integer<std::uint32_t>(factors[index]) << 23);
  return factor_bytes(kind) == 4 ? reinterpret_cast<const float*>(factors)[index]
                                 : f16_to_f32(reinterpret_cast<const std::uint16_t*>(factors)[index]);
}
/// Of powers of two the half: below 2^-125 they count as zero.
void put_factor(scheme kind, std::byte* factors, std::int64_t index, float value) {
  if (factor_bytes(kind) == 1)
    factors[index] = static_cast<std::byte>(std::bit_cast<std::uint32_t>(value / 2) >> 23);
  else if (factor_bytes(kind) == 4)
    reinterpret_cast<float*>(factors)[index] = value;
  else
    reinterpret_cast<std::uint16_t*>(factors)[index] = f32_to_f16(value);
}

/// Where the byte of (out, in) is among the weights; of nibbles two inputs share it.
std::int64_t byte_index(scheme kind, std::int64_t stored_ins, std::int64_t out, std::int64_t in) {
  const std::int64_t block = out / outs_per_block, lane = out % outs_per_block;
  if (has_nibbles(kind)) return (block * stored_ins / 8 + in / 8) * 64 + lane * 4 + in % 4;
  return (block * stored_ins / 4 + in / 4) * 64 + lane * 4 + in % 4;
}

std::int64_t element_index(scheme kind, std::int64_t stored_ins, std::int64_t out, std::int64_t in) {
  const std::int64_t block = out / outs_per_block, lane = out % outs_per_block;
  if (kind == scheme::bf16) return (block * stored_ins / 2 + in / 2) * 2 * outs_per_block + lane * 2 + in % 2;
  return (block * stored_ins + in) * outs_per_block + lane;
}

void unpack_floats(const matrix_view& w, std::int64_t out, float* to) {
  for (std::int64_t i = 0; i < w.ins; ++i) {
    const std::int64_t index = element_index(w.kind, w.stored_ins(), out, i);
    if (w.kind == scheme::bf16)
      to[i] = bf16_to_f32(reinterpret_cast<const std::uint16_t*>(w.weights)[index]);
    else
      to[i] = reinterpret_cast<const float*>(w.weights)[index];
  }
}

}  // namespace

matrix_packer::matrix_packer(scheme kind, std::int64_t outs, std::int64_t ins, std::byte* data)
    : kind_(kind), ins_(ins), groups_(groups_of(kind, ins)), weights_(data) {
  const matrix_bytes bytes = packed_bytes(kind, outs, ins);
  scales_ = data + bytes.weights;
  mids_ = scales_ + bytes.scales;
}

void matrix_packer::put(std::int64_t out, const float* row) {
  const std::int64_t stored = padded_ins(kind_, ins_);
  for (std::int64_t i = 0; i < ins_; ++i) {
    const std::int64_t index = element_index(kind_, stored, out, i);
    if (kind_ == scheme::bf16)
      reinterpret_cast<std::uint16_t*>(weights_)[index] = f32_to_bf16(row[i]);
    else
      reinterpret_cast<float*>(weights_)[index] = row[i];
  }
}

void matrix_packer::put(std::int64_t out, const coded_row& row) {
  const std::int64_t stored = padded_ins(kind_, ins_);
  auto* bytes = reinterpret_cast<std::uint8_t*>(weights_);
  for (std::int64_t i = 0; i < stored; ++i) {
    const std::uint8_t z = row.z[to_size(i)];
    auto& byte = bytes[byte_index(kind_, stored, out, i)];
    byte = has_nibbles(kind_) && i % 8 >= 4 ? static_cast<std::uint8_t>(byte | z << 4) : z;
  }
  for (std::int64_t g = 0; g < groups_; ++g) {
    const std::int64_t index = (out / outs_per_block * groups_ + g) * outs_per_block + out % outs_per_block;
    put_factor(kind_, scales_, index, row.scales[to_size(g)]);
    if (has_mids(kind_)) put_factor(kind_, mids_, index, row.mids[to_size(g)]);
  }
}

void unpack_row(const matrix_view& w, std::int64_t out, float* to) {
  if (!is_integer(w.kind)) return unpack_floats(w, out, to);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(w.weights);
  const std::int64_t group = group_of(w.kind) ? group_of(w.kind) : w.stored_ins();
  for (std::int64_t i = 0; i < w.ins; ++i) {
    const std::int64_t index = (out / outs_per_block * w.groups() + i / group) * outs_per_block + out % outs_per_block;
    int z = bytes[byte_index(w.kind, w.stored_ins(), out, i)];
    if (has_nibbles(w.kind)) z = i % 8 >= 4 ? z >> 4 : z & 15;
    const float product =
        static_cast<float>(level_of(w.kind, z) - zero_point_of(w.kind)) * factor_at(w.kind, w.scales, index);
    to[i] = has_mids(w.kind) ? factor_at(w.kind, w.mids, index) + product : product;
  }
}

}  // namespace troupe
