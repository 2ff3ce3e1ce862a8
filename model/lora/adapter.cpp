#include "model/lora/adapter.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.hpp"
#include "base/half.hpp"
#include "base/to_size.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {
namespace {

std::size_t bytes_of(const factor_view& factor) {
  return to_size(rounded_up(factor.blocks() * factor.block_bytes(), 64));
}

/// [rows, width], as files have factors.
struct factor_numbers {
  const std::vector<float>& of;
  std::int64_t width;
  bool ranks_are_rows;  ///< as in A; in B they are columns

  std::int64_t rows() const { return static_cast<std::int64_t>(of.size()) / width; }
  float at(std::int64_t row, std::int64_t column) const { return of[to_size(row * width + column)]; }
  std::size_t rank_of(std::int64_t row, std::int64_t column) const { return to_size(ranks_are_rows ? row : column); }
};

/// The power of two that brings the largest value just below f16's limit, so that small ones lose nothing.
int exponent_for(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::fabs(value));
  int exponent = 0;
  std::frexp(most, &exponent);
  return 15 - exponent;
}

bool fits_half(const std::vector<float>& values) {
  const int exponent = exponent_for(values);
  return std::all_of(values.begin(), values.end(), [&](float value) {
    const float scaled = std::ldexp(value, exponent);
    return f16_to_f32(f32_to_f16(scaled)) == scaled;
  });
}

factor_kind kind_for(const std::vector<float>& values, adapter_precision precision) {
  switch (precision) {
    case adapter_precision::exact:
      return fits_half(values) ? factor_kind::f16 : factor_kind::f32;
    case adapter_precision::half:
      return factor_kind::f16;
    case adapter_precision::byte:
      return factor_kind::i8;
  }
  __builtin_unreachable();
}

/// In blocks of 16 outputs: convert(row, column).
template <class Convert>
void pack(const factor_numbers& numbers, const factor_view& view, std::byte* to, Convert convert) {
  using element = std::invoke_result_t<Convert, std::int64_t, std::int64_t>;
  auto* elements = reinterpret_cast<element*>(to);
  for (std::int64_t row = 0; row < numbers.rows(); ++row)
    for (std::int64_t column = 0; column < numbers.width; ++column)
      elements[(row / 16 * view.ins + column) * 16 + row % 16] = convert(row, column);
}

/// What an integer of each rank is worth: the rank's largest value becomes 127.
std::vector<float> integer_scales(const factor_numbers& numbers, std::size_t ranks) {
  std::vector<float> scales(ranks);
  for (std::int64_t row = 0; row < numbers.rows(); ++row)
    for (std::int64_t column = 0; column < numbers.width; ++column) {
      float& most = scales[numbers.rank_of(row, column)];
      most = std::max(most, std::fabs(numbers.at(row, column)));
    }
  for (float& scale : scales) scale /= 127;
  return scales;
}

/// Multiplies the ranks' scales by what the packed numbers must be multiplied by.
void pack_factor(const factor_numbers& numbers, const factor_view& view, std::byte* to, std::span<float> rank_scales) {
  switch (view.kind) {
    case factor_kind::f32:
      return pack(numbers, view, to, [&](auto row, auto column) { return numbers.at(row, column); });
    case factor_kind::f16: {
      const int exponent = exponent_for(numbers.of);
      for (float& scale : rank_scales) scale *= std::ldexp(1.0f, -exponent);
      return pack(numbers, view, to,
                  [&](auto row, auto column) { return f32_to_f16(std::ldexp(numbers.at(row, column), exponent)); });
    }
    case factor_kind::i8: {
      const std::vector<float> scales = integer_scales(numbers, rank_scales.size());
      for (std::size_t r = 0; r < scales.size(); ++r) rank_scales[r] *= scales[r];
      return pack(numbers, view, to, [&](auto row, auto column) {
        // Of a rank of next to nothing it is inexact itself: then a quotient may be above 127.
        const float scale = scales[numbers.rank_of(row, column)];
        return scale > 0
                   ? static_cast<std::int8_t>(std::clamp(std::lround(numbers.at(row, column) / scale), -127L, 127L))
                   : std::int8_t{0};
      });
    }
  }
}

std::int64_t outs_of(const adapter_part& part) {
  return static_cast<std::int64_t>(part.b.size()) / part.rank;
}
std::int64_t ins_of(const adapter_part& part) {
  return static_cast<std::int64_t>(part.a.size()) / part.rank;
}

/// A part as it will lie in memory: the ranks' scales, A, then B.
struct packed_part {
  const adapter_part& source;
  factor_view a, b;

  packed_part(const adapter_part& part, adapter_precision precision)
      : source(part),
        a{kind_for(part.a, precision), part.rank, rounded_up(ins_of(part), 4), nullptr},
        b{kind_for(part.b, precision), outs_of(part), part.rank, nullptr} {}

  std::size_t scale_bytes() const { return to_size(padded_outs(source.rank)) * sizeof(float); }
  std::size_t bytes() const { return scale_bytes() + bytes_of(a) + bytes_of(b); }

  lora_weights pack_to(std::byte* data) const {
    auto* scales = reinterpret_cast<float*>(data);
    std::byte *to_a = data + scale_bytes(), *to_b = to_a + bytes_of(a);
    const std::span<float> of_ranks(scales, to_size(source.rank));
    std::fill(of_ranks.begin(), of_ranks.end(), source.scale);
    pack_factor({source.a, ins_of(source), true}, a, to_a, of_ranks);
    pack_factor({source.b, source.rank, false}, b, to_b, of_ranks);
    lora_weights packed{a, b, scales};
    packed.a.weights = to_a;
    packed.b.weights = to_b;
    return packed;
  }
};

}  // namespace

adapter_precision precision_beside(std::string_view quantization) {
  if (quantization.empty() || quantization == "native" || quantization == "f32") return adapter_precision::exact;
  return quantization == "bf16" ? adapter_precision::half : adapter_precision::byte;
}

std::int64_t most_bytes_of(adapter_precision precision) {
  switch (precision) {
    case adapter_precision::exact:
      return bytes_of(factor_kind::f32);
    case adapter_precision::half:
      return bytes_of(factor_kind::f16);
    case adapter_precision::byte:
      return bytes_of(factor_kind::i8);
  }
  __builtin_unreachable();
}

std::size_t lora_adapter::packed_bytes(const adapter_file& file, adapter_precision precision) {
  std::size_t total = 0;
  for (const adapter_part& part : file.parts) total += packed_part(part, precision).bytes();
  return total;
}

lora_adapter::lora_adapter(const adapter_file& file, std::int64_t layers, adapter_precision precision)
    : layers_(to_size(layers)) {
  std::vector<packed_part> parts;
  std::size_t total = 0;
  for (const auto& part : file.parts) {
    if (part.rank > most_adapter_rank)
      refuse("adapter for {}: rank {} is above {}: use an adapter of lower rank", part.name(), part.rank,
             most_adapter_rank);
    parts.emplace_back(part, precision);
    total += parts.back().bytes();
    max_rank_ = std::max(max_rank_, part.rank);
  }
  memory_ = aligned_buffer<std::byte>(total);
  std::byte* at = memory_.data();
  for (const packed_part& part : parts) {
    const adapter_part& source = part.source;
    layers_.at(to_size(source.layer))[to_size(source.kind)] = part.pack_to(at);
    at += part.bytes();
  }
}

}  // namespace troupe
