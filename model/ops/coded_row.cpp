#include "model/ops/coded_row.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/half.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

std::uint8_t code(float value, int highest) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(std::nearbyint(value)), 0, highest));
}

float as_stored(float scale) {
  return f16_to_f32(f32_to_f16(scale));
}

/// z = round((x - min) / (max - min) * 255)
void encode_zero_one(const float* x, std::int64_t n, std::uint8_t* z, float& scale, float& mid) {
  const auto [low, high] = std::minmax_element(x, x + n);
  const float min = *low, range = *high - *low;
  for (std::int64_t i = 0; i < n; ++i) z[i] = range > 0 ? code((x[i] - min) / range * 255.0f, 255) : 0;
  scale = range / 255.0f;
  mid = static_cast<float>(min + 128.0 * scale);
}

void encode_symmetric8(const float* x, std::int64_t n, std::uint8_t* z, float& scale) {
  float most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(x[i]));
  scale = as_stored(most / 127.0f);
  for (std::int64_t i = 0; i < n; ++i) z[i] = scale > 0 ? code(x[i] / scale + 128.0f, 255) : 128;
}

/// Sixteen levels are few: of several scales near the one that just covers the largest value, the one with the
/// smallest squared error.
void encode_symmetric4(const float* x, std::int64_t n, std::uint8_t* z, float& scale) {
  float extreme = 0;
  for (std::int64_t i = 0; i < n; ++i)
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  scale = 0;
  if (extreme == 0) return void(std::fill_n(z, n, 8));
  float best = INFINITY;
  for (int step = -8; step <= 8; ++step) {
    const float candidate = as_stored(extreme / (-8.0f + 0.15f * static_cast<float>(step)));
    if (candidate == 0) continue;
    const float inverse = 1.0f / candidate;
    float error = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const float q = std::clamp(std::nearbyint(x[i] * inverse), -8.0f, 7.0f);
      const float d = x[i] - q * candidate;
      error += d * d;
    }
    if (error < best) {
      best = error;
      scale = candidate;
    }
  }
  for (std::int64_t i = 0; i < n; ++i) z[i] = scale != 0 ? code(x[i] / scale + 8.0f, 15) : 8;
}

/// As OCP's formula has it: the scale is the power of two of which the largest weight is four to eight times, so what
/// is beyond six is cut off; to the nearest value, of two the even one.
void encode_mxfp4(const float* x, std::int64_t n, std::uint8_t* z, float& scale) {
  float most = 0;
  for (std::int64_t i = 0; i < n; ++i) most = std::max(most, std::fabs(x[i]));
  scale = most < 0x1p-120f ? 0 : std::ldexp(1.0f, std::ilogb(most) - 2);
  for (std::int64_t i = 0; i < n; ++i) {
    const float m = scale > 0 ? std::fabs(x[i]) / scale : 0;
    const int magnitude = (m > 0.25f) + (m >= 0.75f) + (m > 1.25f) + (m >= 1.75f) + (m > 2.5f) + (m >= 3.5f) + (m > 5);
    z[i] = static_cast<std::uint8_t>(x[i] < 0 && magnitude > 0 ? magnitude + 8 : magnitude);
  }
}

/// The numbers of a line w = mid + scale * level, with levels from -8 to 7.
struct four_bit_line {
  float scale, mid;

  template <class Use>
  void for_levels(const float* x, std::int64_t n, const Use& use) const {
    const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
    for (std::int64_t i = 0; i < n; ++i) use(i, std::clamp(std::nearbyint((x[i] - mid) * inverse), -8.0f, 7.0f));
  }
  float squared_error(const float* x, std::int64_t n) const {
    float error = 0;
    for_levels(x, n, [&](std::int64_t i, float level) {
      const float d = x[i] - (mid + level * scale);
      error += d * d;
    });
    return error;
  }
  /// The line that is nearest to the weights at this one's levels.
  four_bit_line fitted(const float* x, std::int64_t n) const {
    float levels = 0, squares = 0, distances = 0, products = 0;
    for_levels(x, n, [&](std::int64_t i, float level) {
      levels += level, squares += level * level;
      distances += x[i] - mid, products += level * (x[i] - mid);
    });
    const auto count = static_cast<float>(n);
    const float spread = count * squares - levels * levels;
    if (spread == 0) return *this;
    const float slope = (count * products - levels * distances) / spread;
    return {as_stored(slope), as_stored(mid + (distances - slope * levels) / count)};
  }
};

/// Likewise of several lines that cover somewhat more or less than the weights' range.
void encode_line4(const float* x, std::int64_t n, std::uint8_t* z, float& scale, float& mid) {
  const auto [low, high] = std::minmax_element(x, x + n);
  const float centre = (*low + *high) / 2, range = *high - *low;
  four_bit_line line{0, as_stored(centre)};
  float best = line.squared_error(x, n);
  for (int step = -4; step <= 4; ++step) {
    const float level = range / (15.0f + 0.5f * static_cast<float>(step));
    const four_bit_line fit = four_bit_line{level, centre + level / 2}.fitted(x, n);
    const float error = fit.squared_error(x, n);
    if (error < best) {
      best = error;
      line = fit;
    }
  }
  scale = line.scale, mid = line.mid;
  line.for_levels(x, n, [&](std::int64_t i, float level) { z[i] = static_cast<std::uint8_t>(level + 8.0f); });
}

void prepare(scheme kind, std::int64_t ins, coded_row& to) {
  const auto groups = to_size(groups_of(kind, ins));
  to.z.assign(to_size(padded_ins(kind, ins)), static_cast<std::uint8_t>(zero_code_of(kind)));
  to.scales.assign(groups, 0.0f);
  to.mids.assign(groups, 0.0f);
}

}  // namespace

void encode_row(scheme kind, const float* row, std::int64_t ins, coded_row& to) {
  prepare(kind, ins, to);
  const std::int64_t group = group_of(kind) ? group_of(kind) : ins;
  for (std::int64_t first = 0, g = 0; first < ins; first += group, ++g) {
    const std::int64_t n = std::min(group, ins - first);
    std::uint8_t* z = to.z.data() + first;
    float &scale = to.scales[to_size(g)], &mid = to.mids[to_size(g)];
    if (kind == scheme::q8)
      encode_symmetric8(row + first, n, z, scale);
    else if (kind == scheme::q4)
      encode_symmetric4(row + first, n, z, scale);
    else if (kind == scheme::mxfp4)
      encode_mxfp4(row + first, n, z, scale);
    else if (kind == scheme::u4g32)
      encode_line4(row + first, n, z, scale, mid);
    else
      encode_zero_one(row + first, n, z, scale, mid);
  }
}

std::optional<scheme> scheme_of_blocks(dtype type) {
  switch (type) {
    case dtype::q8_0:
      return scheme::q8;
    case dtype::q4_0:
      return scheme::q4;
    case dtype::q4_1:
    case dtype::q4_k:
      return scheme::u4g32;
    case dtype::mxfp4:
      return scheme::mxfp4;
    default:
      return std::nullopt;
  }
}

void copy_gguf_row(dtype type, const std::byte* row, std::int64_t ins, coded_row& to) {
  const scheme kind = scheme_of_blocks(type).value();
  prepare(kind, ins, to);
  if (kind == scheme::u4g32 || kind == scheme::mxfp4)
    return to_nibbles(type, row, ins, to.z.data(), to.scales.data(), to.mids.data());
  for (std::int64_t g = 0; g < ins / 32; ++g) {
    std::uint16_t scale;
    std::memcpy(&scale, row, 2);
    to.scales[to_size(g)] = f16_to_f32(scale);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(row + 2);
    std::uint8_t* z = to.z.data() + g * 32;
    for (int i = 0; i < 32; ++i)
      z[i] = kind == scheme::q8 ? static_cast<std::uint8_t>(bytes[i] ^ 0x80)
                                : static_cast<std::uint8_t>(i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4);
    row += kind == scheme::q8 ? 34 : 18;
  }
}

std::optional<scheme> scheme_of_codes(const weight_codes& codes) {
  const bool is_row = codes.group == codes.ins;
  const auto fits = [&](scheme kind) {
    const std::int64_t group = group_of(kind);
    return is_row || (group > 0 && codes.group > 0 && codes.group % group == 0) ? std::optional(kind) : std::nullopt;
  };
  if (codes.layout == code_layout::floats) return std::nullopt;
  if (codes.layout == code_layout::e2m1) return fits(scheme::mxfp4);
  if (codes.bits == 4) return fits(codes.zeros ? scheme::u4g32 : scheme::q4);
  return fits(is_row ? scheme::u8 : scheme::u8g64);
}

void copy_codes(const weight_codes& codes, std::int64_t out, coded_row& to) {
  const scheme kind = scheme_of_codes(codes).value();
  prepare(kind, codes.ins, to);
  codes.read_codes(out, to.z.data());
  const std::int64_t group = group_of(kind) ? group_of(kind) : codes.ins;
  for (std::int64_t first = 0, g = 0; first < codes.ins; first += group, ++g) {
    const auto [scale, mid] = codes.line_of(out, first / codes.group);
    to.scales[to_size(g)] = scale, to.mids[to_size(g)] = mid;
  }
}

}  // namespace troupe
