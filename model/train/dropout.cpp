#include "model/train/dropout.hpp"

#include <algorithm>

#include "model/engine/random.hpp"

namespace troupe {

void apply_dropout(const dropout_key& key, std::int64_t row, const float* x, std::int64_t n, float* out) {
  constexpr std::int64_t at_once = 8;  // sixteen bits decide an element
  const auto limit = static_cast<std::uint32_t>(key.probability * 65536.0f);
  const float factor = 1.0f / (1.0f - key.probability);
  const std::array<std::uint32_t, 2> seed{static_cast<std::uint32_t>(key.seed),
                                          static_cast<std::uint32_t>(key.seed >> 32)};
  for (std::int64_t i = 0; i < n; i += at_once) {
    const auto bits = philox(
        {static_cast<std::uint32_t>(i / at_once), static_cast<std::uint32_t>(row), key.pass, key.stream + 1}, seed);
    for (std::int64_t j = 0; j < std::min(at_once, n - i); ++j) {
      const std::uint32_t drawn = bits[static_cast<std::size_t>(j / 2)] >> (j % 2 * 16) & 0xffff;
      out[i + j] = drawn < limit ? 0.0f : x[i + j] * factor;
    }
  }
}

}  // namespace troupe
