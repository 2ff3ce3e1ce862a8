#pragma once
#include <cstring>
#include <vector>

#include "base/half.hpp"
#include "model/ops/kernels.hpp"
#include "tests/model/ops/random_data.hpp"

namespace troupe {

/// A factor packed by the rule in factor_view, and its values after rounding.
struct random_factor {
  aligned_buffer<std::byte> memory;
  factor_view view;
  std::vector<float> values;  // [outs, ins]

  random_factor(random_data& random, bool half, std::int64_t outs, std::int64_t ins, std::int64_t stored_ins)
      : memory(static_cast<std::size_t>(padded_outs(outs) * stored_ins * 4)),
        view{half, outs, stored_ins, memory.data()} {
    for (std::int64_t out = 0; out < outs; ++out)
      for (std::int64_t in = 0; in < ins; ++in) {
        const std::uint16_t rounded = f32_to_f16(random.value());
        const auto at = static_cast<std::size_t>((out / 16 * stored_ins + in) * 16 + out % 16);
        values.push_back(f16_to_f32(rounded));
        if (half)
          std::memcpy(memory.data() + at * 2, &rounded, 2);
        else
          std::memcpy(memory.data() + at * 4, &values.back(), 4);
      }
  }
};

}  // namespace troupe
