#include "model/lora/adapter.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.hpp"
#include "base/half.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {
namespace {

std::size_t bytes_of(const factor_view& factor) {
  return static_cast<std::size_t>(rounded_up(factor.blocks() * factor.block_bytes(), 64));
}

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

/// [outs, ins] in blocks of 16 outputs, each with `stored_ins` inputs.
template <class Element, class Convert>
void pack(const std::vector<float>& rows, std::int64_t outs, std::int64_t ins, std::int64_t stored_ins, std::byte* to,
          Convert convert) {
  auto* elements = reinterpret_cast<Element*>(to);
  for (std::int64_t out = 0; out < outs; ++out)
    for (std::int64_t in = 0; in < ins; ++in)
      elements[(out / 16 * stored_ins + in) * 16 + out % 16] = convert(rows[static_cast<std::size_t>(out * ins + in)]);
}

/// Returns what the packed numbers must be multiplied by.
float pack_factor(const std::vector<float>& rows, std::int64_t ins, const factor_view& view, std::byte* to) {
  if (!view.half) {
    pack<float>(rows, view.outs, ins, view.ins, to, [](float value) { return value; });
    return 1.0f;
  }
  const int exponent = exponent_for(rows);
  pack<std::uint16_t>(rows, view.outs, ins, view.ins, to,
                      [&](float value) { return f32_to_f16(std::ldexp(value, exponent)); });
  return std::ldexp(1.0f, -exponent);
}

std::int64_t outs_of(const adapter_part& part) {
  return static_cast<std::int64_t>(part.b.size()) / part.rank;
}
std::int64_t ins_of(const adapter_part& part) {
  return static_cast<std::int64_t>(part.a.size()) / part.rank;
}

/// A part as it will lie in memory: A, then B.
struct packed_part {
  const adapter_part& source;
  factor_view a, b;

  packed_part(const adapter_part& part, adapter_precision precision) : source(part) {
    const bool rounded = precision == adapter_precision::half;
    a = {rounded || fits_half(part.a), part.rank, rounded_up(ins_of(part), 4), nullptr};
    b = {rounded || fits_half(part.b), outs_of(part), part.rank, nullptr};
  }
  std::size_t bytes() const { return bytes_of(a) + bytes_of(b); }

  lora_weights pack_to(std::byte* data) const {
    lora_weights to{a, b, source.scale};
    to.a.weights = data;
    to.b.weights = data + bytes_of(a);
    to.scale *= pack_factor(source.a, ins_of(source), a, data);
    to.scale *= pack_factor(source.b, source.rank, b, data + bytes_of(a));
    return to;
  }
};

}  // namespace

adapter_precision precision_beside(std::string_view quantization) {
  const bool as_it_is = quantization.empty() || quantization == "native" || quantization == "f32";
  return as_it_is ? adapter_precision::exact : adapter_precision::half;
}

std::size_t lora_adapter::packed_bytes(const adapter_file& file, adapter_precision precision) {
  std::size_t total = 0;
  for (const adapter_part& part : file.parts) total += packed_part(part, precision).bytes();
  return total;
}

lora_adapter::lora_adapter(const adapter_file& file, std::int64_t layers, adapter_precision precision)
    : layers_(static_cast<std::size_t>(layers)) {
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
    layers_.at(static_cast<std::size_t>(source.layer))[static_cast<std::size_t>(source.kind)] = part.pack_to(at);
    at += part.bytes();
  }
}

}  // namespace troupe
