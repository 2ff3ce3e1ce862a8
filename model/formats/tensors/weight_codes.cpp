#include "model/formats/tensors/weight_codes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/half.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

/// Where AWQ has the outputs 0 to 7 of a word.
constexpr std::array<int, 8> shuffled_places{0, 4, 1, 5, 2, 6, 3, 7};

std::uint32_t word_at(const tensor_view& words, std::int64_t at) {
  std::uint32_t word;
  std::memcpy(&word, words.data.data() + at * 4, 4);
  return word;
}
std::int8_t byte_at(const tensor_view& bytes, std::int64_t at) {
  return static_cast<std::int8_t>(bytes.data[to_size(at)]);
}
float number_at(const tensor_view& numbers, std::int64_t at) {
  float number;
  to_floats(numbers.type, numbers.data.data() + at * block_of(numbers.type).bytes, 1, &number);
  return number;
}

/// Code `place` of a word, from the low bits on.
std::uint32_t code_of(std::uint32_t word, int bits, std::int64_t place) {
  return word >> (bits * static_cast<int>(place)) & ((1u << bits) - 1);
}

/// Of e2m1, the file's.
std::int64_t row_of(const weight_codes& codes, std::int64_t out) {
  return codes.first_row + out * codes.row_step;
}

float scale_of(const weight_codes& codes, std::int64_t out, std::int64_t group) {
  switch (codes.layout) {
    case code_layout::by_input:
    case code_layout::shuffled:
      return number_at(codes.scales, group * codes.outs + out);
    case code_layout::by_output:
    case code_layout::bytes:
    case code_layout::floats:
      return number_at(codes.scales, out / codes.outs_alike * codes.groups + group);
    case code_layout::e2m1:
      return e8m0_to_f32(static_cast<std::uint8_t>(byte_at(codes.scales, row_of(codes, out) * codes.groups + group)));
  }
  __builtin_unreachable();
}

}  // namespace

int weight_codes::zero_of(std::int64_t out, std::int64_t of_group) const {
  if (!zeros) return half();
  if (zeros->type == dtype::i8) return byte_at(*zeros, out / outs_alike * groups + of_group) + half();
  const std::int64_t per = 32 / bits, in_groups = of_group * words_for(outs, bits) + out / per;
  const auto code = [&](std::int64_t word, std::int64_t place) {
    return static_cast<int>(code_of(word_at(*zeros, word), bits, place));
  };
  switch (layout) {
    case code_layout::by_input:
      return zeros_less_one ? (code(in_groups, out % per) + 1) & ((1 << bits) - 1) : code(in_groups, out % per);
    case code_layout::shuffled:
      return code(in_groups, shuffled_places[to_size(out % per)]);
    case code_layout::by_output:
    case code_layout::bytes:
      return code(out / per * groups + of_group, out % per);
    case code_layout::floats:
    case code_layout::e2m1:
      return half();  // they have none
  }
  __builtin_unreachable();
}

weight_codes::line weight_codes::line_of(std::int64_t out, std::int64_t of_group) const {
  const float scale = scale_of(*this, out, of_group);
  if (layout == code_layout::e2m1) return {scale, 0.0f};
  return {scale, scale * static_cast<float>(half() - zero_of(out, of_group))};
}

void weight_codes::read_codes(std::int64_t out, std::uint8_t* to) const {
  const std::int64_t per = 32 / bits;
  const auto put_words = [&](std::int64_t first, std::int64_t stride) {
    for (std::int64_t i = 0; i < ins; i += per, first += stride)
      for (std::int64_t place = 0; place < std::min(per, ins - i); ++place)
        to[i + place] = static_cast<std::uint8_t>(code_of(word_at(codes, first), bits, place));
  };
  switch (layout) {
    case code_layout::by_input:
      return put_words(out, outs);
    case code_layout::by_output:
      return put_words(out * words_for(ins, bits), 1);
    case code_layout::shuffled:
      for (std::int64_t i = 0; i < ins; ++i)
        to[i] = static_cast<std::uint8_t>(
            code_of(word_at(codes, i * (outs / per) + out / per), bits, shuffled_places[to_size(out % per)]));
      return;
    case code_layout::e2m1:
      for (std::int64_t i = 0; i < ins; ++i)
        to[i] = static_cast<std::uint8_t>(byte_at(codes, row_of(*this, out) * (ins / 2) + i / 2) >> i % 2 * 4 & 15);
      return;
    case code_layout::bytes:
      for (std::int64_t i = 0; i < ins; ++i) to[i] = static_cast<std::uint8_t>(byte_at(codes, out * ins + i) + half());
      return;
    case code_layout::floats:
      return;  // they are no codes
  }
}

void weight_codes::read_row(std::int64_t out, float* to) const {
  const bool are_floats = layout == code_layout::floats;
  std::vector<line> lines;
  for (std::int64_t g = 0; g < groups; ++g)
    lines.push_back(are_floats ? line{scale_of(*this, out, g), 0.0f} : line_of(out, g));
  if (are_floats) {
    to_floats(codes.type, codes.data.data() + out * ins, ins, to);
  } else {
    std::vector<std::uint8_t> row(to_size(ins));
    read_codes(out, row.data());
    for (std::int64_t i = 0; i < ins; ++i) {
      const std::uint8_t code = row[to_size(i)];
      to[i] = layout == code_layout::e2m1 ? e2m1_to_f32(code) : static_cast<float>(code - half());
    }
  }
  for (std::int64_t i = 0; i < ins; ++i) {
    const std::int64_t g = group > 0 ? i / group : groups_of[to_size(i)];
    to[i] = lines[to_size(g)].mid + lines[to_size(g)].scale * to[i];
  }
}

}  // namespace troupe
