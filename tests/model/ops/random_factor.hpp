#pragma once
#include <cmath>
#include <cstring>
#include <vector>

#include "base/half.hpp"
#include "base/to_size.hpp"
#include "model/ops/kernels.hpp"
#include "tests/model/ops/random_data.hpp"

namespace troupe {

/// A factor packed by the rule in factor_view, and what its numbers are worth.
struct random_factor {
  aligned_buffer<std::byte> memory;
  factor_view view;
  float scale;                // of what is packed
  std::vector<float> values;  // [outs, ins]

  random_factor(random_data& random, factor_kind kind, std::int64_t outs, std::int64_t ins, std::int64_t stored_ins)
      : memory(to_size(padded_outs(outs) * stored_ins * bytes_of(kind))),
        view{kind, outs, stored_ins, memory.data()},
        scale(kind == factor_kind::i8 ? 1.0f / 16 : 1.0f) {
    for (std::int64_t out = 0; out < outs; ++out)
      for (std::int64_t in = 0; in < ins; ++in) {
        const auto at = (out / 16 * stored_ins + in) * 16 + out % 16;
        put(random.value(), memory.data() + at * bytes_of(kind));
      }
  }

 private:
  void put(float value, std::byte* to) {
    const std::uint16_t half = f32_to_f16(value);
    const auto byte = static_cast<std::int8_t>(std::lround(value / scale));
    const float rounded = f16_to_f32(half);
    switch (view.kind) {
      case factor_kind::f32:
        std::memcpy(to, &rounded, sizeof rounded);
        break;
      case factor_kind::f16:
        std::memcpy(to, &half, sizeof half);
        break;
      case factor_kind::i8:
        std::memcpy(to, &byte, sizeof byte);
    }
    values.push_back(view.kind == factor_kind::i8 ? static_cast<float>(byte) * scale : rounded);
  }
};

constexpr factor_kind every_factor_kind[] = {factor_kind::f32, factor_kind::f16, factor_kind::i8};

}  // namespace troupe
