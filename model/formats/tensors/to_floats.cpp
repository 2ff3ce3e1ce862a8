#include <array>
#include <cstring>

#include "base/error.hpp"
#include "base/half.hpp"
#include "base/to_size.hpp"
#include "model/formats/tensors/tensor.hpp"

namespace troupe {
namespace {

// Names of GGUF's blocks: q is an element's integer, `scale` and `least` make it a float (scale * q, or scale * q +
// least). The larger blocks have 256 elements, and for each 16 or 32 of them a small integer that the block's own f16
// scales.

int byte_of(const std::byte* from, std::int64_t at) {
  return static_cast<int>(from[at]);
}

int signed_byte_of(const std::byte* from, std::int64_t at) {
  return static_cast<std::int8_t>(from[at]);
}

// Files promise no alignment, so values are copied out; compilers turn these into plain loads.
template <class Word>
Word word_of(const std::byte* from, std::int64_t at) {
  Word word;
  std::memcpy(&word, from + at, sizeof word);
  return word;
}

float half_of(const std::byte* from, std::int64_t at) {
  return f16_to_f32(word_of<std::uint16_t>(from, at));
}

/// 2 * half elements: byte i holds element i in its low and element i + half in its high nibble.
template <class To, class Value>
void from_nibbles(const std::byte* nibbles, int half, To* to, Value value) {
  for (int i = 0; i < half; ++i) {
    to[i] = value(byte_of(nibbles, i) & 15, i);
    to[i + half] = value(byte_of(nibbles, i) >> 4, i + half);
  }
}

// ---- blocks of 32 ----

void q8_0(const std::byte* from, float* to) {
  const float scale = half_of(from, 0);
  for (int i = 0; i < 32; ++i) to[i] = scale * static_cast<float>(signed_byte_of(from, 2 + i));
}

void q4_0(const std::byte* from, float* to) {
  const float scale = half_of(from, 0);
  from_nibbles(from + 2, 16, to, [&](int q, int) { return scale * static_cast<float>(q - 8); });
}

void q4_1(const std::byte* from, float* to) {
  const float scale = half_of(from, 0), least = half_of(from, 2);
  from_nibbles(from + 4, 16, to, [&](int q, int) { return scale * static_cast<float>(q) + least; });
}

/// The fifth bit of element i is bit i of a word.
int with_fifth_bit(int q, std::uint32_t fifth, int i) {
  return q | static_cast<int>(fifth >> i & 1) << 4;
}

void q5_0(const std::byte* from, float* to) {
  const float scale = half_of(from, 0);
  const auto fifth = word_of<std::uint32_t>(from, 2);
  from_nibbles(from + 6, 16, to,
               [&](int q, int i) { return scale * static_cast<float>(with_fifth_bit(q, fifth, i) - 16); });
}

void q5_1(const std::byte* from, float* to) {
  const float scale = half_of(from, 0), least = half_of(from, 2);
  const auto fifth = word_of<std::uint32_t>(from, 4);
  from_nibbles(from + 8, 16, to,
               [&](int q, int i) { return scale * static_cast<float>(with_fifth_bit(q, fifth, i)) + least; });
}

/// What the nibbles of IQ4_NL and IQ4_XS stand for: finer near zero.
constexpr std::array<std::int8_t, 16> uneven_levels = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                       1,    13,   25,  38,  53,  69,  89,  113};

float uneven(int q) {
  return static_cast<float>(uneven_levels[to_size(q)]);
}

void iq4_nl(const std::byte* from, float* to) {
  const float scale = half_of(from, 0);
  from_nibbles(from + 2, 16, to, [&](int q, int) { return scale * uneven(q); });
}

/// The nibbles of MXFP4 are floats of four bits, the scale is a power of two.
void mxfp4(const std::byte* from, float* to) {
  const float scale = e8m0_to_f32(static_cast<std::uint8_t>(from[0]));
  from_nibbles(from + 1, 16, to, [&](int q, int) { return scale * e2m1_to_f32(static_cast<std::uint8_t>(q)); });
}

// ---- blocks of 256 ----

/// Two bits an element: 32 bytes hold 128 elements, the lowest bits the first 32 of them.
int two_bits(const std::byte* from, int i) {
  return byte_of(from, i / 128 * 32 + i % 32) >> i % 128 / 32 * 2 & 3;
}

void q2_k(const std::byte* from, float* to) {
  const auto *subs = from, *quants = from + 16;
  const float scale = half_of(from, 80), least = half_of(from, 82);
  for (int i = 0; i < 256; ++i) {
    const int sub = byte_of(subs, i / 16);
    to[i] = scale * static_cast<float>(sub & 15) * static_cast<float>(two_bits(quants, i)) -
            least * static_cast<float>(sub >> 4);
  }
}

/// Sixteen scales of six bits: four in the nibbles of 8 bytes, two in the 4 bytes after them.
int q3_k_scale(const std::byte* packed, int sub) {
  const int low = byte_of(packed, sub % 8) >> sub / 8 * 4 & 15;
  const int high = byte_of(packed, 8 + sub % 4) >> sub / 4 * 2 & 3;
  return (low | high << 4) - 32;
}

void q3_k(const std::byte* from, float* to) {
  const auto *third = from, *quants = from + 32, *subs = from + 96;
  const float scale = half_of(from, 108);
  for (int i = 0; i < 256; ++i) {
    const int q = two_bits(quants, i) | (byte_of(third, i % 32) >> i / 32 & 1) << 2;
    to[i] = scale * static_cast<float>(q3_k_scale(subs, i / 16)) * static_cast<float>(q - 4);
  }
}

/// Of Q4_K and Q5_K, each 32 elements: scale and least, eight of each, six bits, in 12 bytes.
struct sub_block {
  float scale, least;
};

sub_block sub_block_of(const std::byte* from, int sub) {
  const auto* packed = from + 4;
  int scale = byte_of(packed, sub % 4) & 63, least = byte_of(packed, sub % 4 + 4) & 63;
  if (sub >= 4) {
    const int low = byte_of(packed, sub + 4);
    scale = (low & 15) | byte_of(packed, sub - 4) >> 6 << 4;
    least = low >> 4 | byte_of(packed, sub) >> 6 << 4;
  }
  return {half_of(from, 0) * static_cast<float>(scale), half_of(from, 2) * static_cast<float>(least)};
}

void q4_k(const std::byte* from, float* to) {
  for (int pair = 0; pair < 4; ++pair) {
    const std::array subs = {sub_block_of(from, 2 * pair), sub_block_of(from, 2 * pair + 1)};
    from_nibbles(from + 16 + 32 * pair, 32, to + 64 * pair, [&](int q, int i) {
      const auto& sub = subs[to_size(i / 32)];
      return sub.scale * static_cast<float>(q) - sub.least;
    });
  }
}

void q5_k(const std::byte* from, float* to) {
  const auto* fifth = from + 16;
  for (int pair = 0; pair < 4; ++pair) {
    const std::array subs = {sub_block_of(from, 2 * pair), sub_block_of(from, 2 * pair + 1)};
    from_nibbles(from + 48 + 32 * pair, 32, to + 64 * pair, [&](int q, int i) {
      const auto& sub = subs[to_size(i / 32)];
      const int bit = byte_of(fifth, i % 32) >> (2 * pair + i / 32) & 1;
      return sub.scale * static_cast<float>(q | bit << 4) - sub.least;
    });
  }
}

void q6_k(const std::byte* from, float* to) {
  const auto *low = from, *high = from + 128, *subs = from + 192;
  const float scale = half_of(from, 208);
  for (int i = 0; i < 256; ++i) {
    const int nibbles = byte_of(low, i / 128 * 64 + i % 64), nibble = i % 128 < 64 ? nibbles & 15 : nibbles >> 4;
    const int q = (nibble | two_bits(high, i) << 4) - 32;
    to[i] = scale * static_cast<float>(signed_byte_of(subs, i / 16)) * static_cast<float>(q);
  }
}

void iq4_xs(const std::byte* from, float* to) {
  const float scale = half_of(from, 0);
  const int high = byte_of(from, 2) | byte_of(from, 3) << 8;
  for (int sub = 0; sub < 8; ++sub) {
    const int low = byte_of(from, 4 + sub / 2) >> sub % 2 * 4 & 15;
    const float fine = scale * static_cast<float>((low | (high >> 2 * sub & 3) << 4) - 32);
    from_nibbles(from + 8 + 16 * sub, 16, to + 32 * sub, [&](int q, int) { return fine * uneven(q); });
  }
}

/// A block of Q4_1, Q4_K or MXFP4.
void block_to_nibbles(dtype type, const std::byte* from, std::uint8_t* z, float* scales, float* mids) {
  const auto as_it_is = [](int q, int) { return static_cast<std::uint8_t>(q); };
  if (type == dtype::q4_1) {
    scales[0] = half_of(from, 0);
    mids[0] = half_of(from, 2) + 8 * scales[0];
    return from_nibbles(from + 4, 16, z, as_it_is);
  }
  if (type == dtype::mxfp4) {
    scales[0] = e8m0_to_f32(static_cast<std::uint8_t>(from[0]));
    mids[0] = 0;
    return from_nibbles(from + 1, 16, z, as_it_is);
  }
  for (int sub = 0; sub < 8; ++sub) {
    const auto [scale, least] = sub_block_of(from, sub);
    scales[sub] = scale;
    mids[sub] = 8 * scale - least;
  }
  for (int pair = 0; pair < 4; ++pair) from_nibbles(from + 16 + 32 * pair, 32, z + 64 * pair, as_it_is);
}

using block_reader = void (*)(const std::byte* from, float* to);

/// Of the types from q8_0 on, in the order of dtype.
constexpr std::array<block_reader, 13> block_readers = {q8_0, q4_0, q4_1, q5_0,   q5_1,   q2_k, q3_k,
                                                        q4_k, q5_k, q6_k, iq4_nl, iq4_xs, mxfp4};

block_reader reader_of(dtype type) {
  if (type < dtype::q8_0) refuse("a tensor of the type {} cannot be read as floats", name_of(type));
  return block_readers.at(to_size(type) - to_size(dtype::q8_0));
}

void from_f16(const std::byte* __restrict from, std::int64_t count, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = half_of(from, 2 * i);
}

void from_bf16(const std::byte* __restrict from, std::int64_t count, float* __restrict to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = bf16_to_f32(word_of<std::uint16_t>(from, 2 * i));
}

void from_f8(const std::byte* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = f8_to_f32(static_cast<std::uint8_t>(from[i]));
}

void from_blocks(dtype type, const std::byte* from, std::int64_t count, float* to) {
  const auto read = reader_of(type);
  const auto block = block_of(type);
  for (std::int64_t first = 0; first < count; first += block.elements, from += block.bytes) read(from, to + first);
}

}  // namespace

void to_floats(dtype type, const std::byte* from, std::int64_t count, float* to) {
  if (count <= 0) return;
  switch (type) {
    case dtype::f32:
      std::memcpy(to, from, to_size(count) * sizeof(float));
      return;
    case dtype::f16:
      return from_f16(from, count, to);
    case dtype::bf16:
      return from_bf16(from, count, to);
    case dtype::f8_e4m3:
      return from_f8(from, count, to);
    default:
      return from_blocks(type, from, count, to);
  }
}

void to_nibbles(dtype type, const std::byte* from, std::int64_t count, std::uint8_t* z, float* scales, float* mids) {
  const auto block = block_of(type);
  for (std::int64_t first = 0; first < count; first += block.elements, from += block.bytes)
    block_to_nibbles(type, from, z + first, scales + first / 32, mids + first / 32);
}

}  // namespace troupe
