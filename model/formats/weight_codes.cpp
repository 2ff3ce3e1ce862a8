#include "model/formats/weight_codes.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.hpp"
#include "base/half.hpp"
#include "base/rounding.hpp"
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

std::int64_t words_for(std::int64_t codes, int bits) {
  return ceil_div(codes * bits, 32);
}

int half_of(const weight_codes& codes) {
  return 1 << (codes.bits - 1);
}

int zero_of(const weight_codes& codes, std::int64_t out, std::int64_t group) {
  if (!codes.zeros) return half_of(codes);
  const tensor_view& zeros = *codes.zeros;
  const std::int64_t per = 32 / codes.bits, place = out % per;
  if (zeros.type == dtype::i8) return byte_at(zeros, out / codes.outs_alike * codes.groups + group) + half_of(codes);
  if (codes.layout == code_layout::by_output)
    return static_cast<int>(code_of(word_at(zeros, out / per * codes.groups + group), codes.bits, place));
  const std::uint32_t word = word_at(zeros, group * words_for(codes.outs, codes.bits) + out / per);
  if (codes.layout == code_layout::shuffled)
    return static_cast<int>(code_of(word, codes.bits, shuffled_places[to_size(place)]));
  const int zero = static_cast<int>(code_of(word, codes.bits, place));
  return codes.zeros_less_one ? (zero + 1) & ((1 << codes.bits) - 1) : zero;
}

/// Of e2m1, the file's.
std::int64_t row_of(const weight_codes& codes, std::int64_t out) {
  return codes.first_row + out * codes.row_step;
}

float scale_of(const weight_codes& codes, std::int64_t out, std::int64_t group) {
  if (codes.layout == code_layout::e2m1)
    return e8m0_to_f32(static_cast<std::uint8_t>(byte_at(codes.scales, row_of(codes, out) * codes.groups + group)));
  const bool groups_first = codes.layout == code_layout::by_input || codes.layout == code_layout::shuffled;
  return number_at(codes.scales,
                   groups_first ? group * codes.outs + out : out / codes.outs_alike * codes.groups + group);
}

// ---- finding them ----

/// The tensors that stand in place of one: all of its name but "weight" is theirs.
class parts {
 public:
  parts(const tensor_set& set, const std::string& name, std::int64_t outs, std::int64_t ins)
      : set_(set), stem_(name.substr(0, name.rfind('.') + 1)), outs_(outs), ins_(ins) {}

  const tensor_view* find(std::string_view part) const { return set_.find(stem_ + std::string(part)); }
  const tensor_view& get(std::string_view part) const {
    const tensor_view* found = find(part);
    if (!found) refuse("{}: \"{}weight\" is quantized, but \"{}{}\" is missing", place(), stem_, stem_, part);
    return *found;
  }
  std::int64_t outs() const { return outs_; }
  std::int64_t ins() const { return ins_; }

  [[noreturn]] void refuse_shape(std::string_view part) const {
    const tensor_view& tensor = get(part);
    refuse("{}: tensor \"{}{}\", {} {}, does not fit a quantized matrix of [{}, {}]", set_.file_of(tensor), stem_, part,
           name_of(tensor.type), text_of(tensor.shape), outs_, ins_);
  }
  [[noreturn]] void refuse_zeros() const {
    refuse(
        "{}: tensor \"{}qzeros\" has other zero points than symmetric ones, but config.json says \"sym\": true: set "
        "that to false",
        set_.file_of(get("qzeros")), stem_);
  }
  void expect(std::string_view part, dtype type, const std::vector<std::int64_t>& shape) const {
    if (get(part).type != type || get(part).shape != shape) refuse_shape(part);
  }
  void expect_numbers(std::string_view part) const {
    const dtype type = get(part).type;
    if (type != dtype::f32 && type != dtype::f16 && type != dtype::bf16) refuse_shape(part);
  }

 private:
  std::string place() const { return set_.files.empty() ? "the model" : set_.files.front().name(); }

  const tensor_set& set_;
  std::string stem_;
  std::int64_t outs_, ins_;
};

/// Inputs in equal runs.
void set_groups(const parts& from, std::string_view scales, std::int64_t groups, weight_codes& into) {
  if (groups <= 0 || from.ins() % groups != 0) from.refuse_shape(scales);
  into.groups = groups;
  into.group = from.ins() / groups;
}

/// Each input's group as the file lists it.
void read_groups(const parts& from, std::string_view part, weight_codes& into) {
  from.expect(part, dtype::i32, {from.ins()});
  std::vector<std::int32_t> list(to_size(from.ins()));
  std::memcpy(list.data(), from.get(part).data.data(), list.size() * sizeof(std::int32_t));
  if (std::any_of(list.begin(), list.end(), [&](std::int32_t each) { return each < 0 || each >= into.groups; }))
    from.refuse_shape(part);
  const auto run = std::find_if(list.begin(), list.end(), [&](std::int32_t each) { return each != list.front(); });
  into.group = run - list.begin();
  for (std::int64_t i = 0; into.group > 0 && i < from.ins(); ++i)
    if (list[to_size(i)] != i / into.group) into.group = 0;
  if (into.group == 0) into.groups_of = std::move(list);
}

/// How wide codes are of which so many fill so many words.
int width_of(const parts& from, std::string_view part, std::int64_t words, std::int64_t codes) {
  for (const int bits : {4, 8})
    if (words == words_for(codes, bits)) return bits;
  from.refuse_shape(part);
}

/// Those of the first group are looked at: all would be as much to read as a small model.
void leave_out_zeros(const parts& from, weight_codes& codes) {
  for (std::int64_t out = 0; out < codes.outs; ++out)
    if (zero_of(codes, out, 0) != half_of(codes)) from.refuse_zeros();
  codes.zeros.reset();
}

/// GPTQ and AWQ: scales and zero points are [groups, outs].
weight_codes by_columns(const parts& from, const code_settings& settings) {
  weight_codes codes{
      .outs = from.outs(), .ins = from.ins(), .codes = from.get("qweight"), .scales = from.get("scales")};
  const bool is_awq = settings.format == code_format::awq;
  codes.layout = is_awq ? code_layout::shuffled : code_layout::by_input;
  if (codes.codes.shape.size() != 2) from.refuse_shape("qweight");
  if (!is_awq) codes.bits = width_of(from, "qweight", codes.codes.shape[0], from.ins());
  const std::int64_t per = 32 / codes.bits;
  if (from.outs() % per != 0 || (!is_awq && from.ins() % per != 0)) from.refuse_shape("qweight");
  if (is_awq)
    from.expect("qweight", dtype::i32, {from.ins(), from.outs() / per});
  else
    from.expect("qweight", dtype::i32, {from.ins() / per, from.outs()});
  from.expect_numbers("scales");
  if (codes.scales.shape.size() != 2 || codes.scales.shape[1] != from.outs()) from.refuse_shape("scales");
  codes.groups = codes.scales.shape[0];
  if (!is_awq && from.find("g_idx"))
    read_groups(from, "g_idx", codes);
  else
    set_groups(from, "scales", codes.groups, codes);
  from.expect("qzeros", dtype::i32, {codes.groups, from.outs() / per});
  codes.zeros = from.get("qzeros");
  codes.zeros_less_one = settings.format == code_format::gptq;
  if (settings.is_symmetric) leave_out_zeros(from, codes);
  return codes;
}

/// Of all outputs, of each output or its groups, or of blocks.
void read_scales(const parts& from, std::string_view part, const code_settings& settings, weight_codes& into) {
  from.expect_numbers(part);
  into.scales = from.get(part);
  const auto& shape = into.scales.shape;
  if (into.scales.elements() == 1) {
    into.outs_alike = from.outs();
    set_groups(from, part, 1, into);
  } else if (shape.size() <= 2 && shape[0] == from.outs()) {
    set_groups(from, part, shape.size() == 2 ? shape[1] : 1, into);
  } else if (shape ==
             std::vector{ceil_div(from.outs(), settings.block_outs), ceil_div(from.ins(), settings.block_ins)}) {
    into.outs_alike = settings.block_outs;
    into.groups = shape[1];
    into.group = settings.block_ins;
  } else {
    from.refuse_shape(part);
  }
}

/// Of compressed-tensors: zero points of bytes lie as the scales do, others are packed along the outputs.
void read_zeros(const parts& from, weight_codes& into) {
  constexpr std::string_view part = "weight_zero_point";
  const tensor_view* zeros = from.find(part);
  if (!zeros) return;
  if (zeros->type == dtype::i8 && zeros->elements() == into.scales.elements()) {
    into.zeros = *zeros;
    return;
  }
  from.expect(part, dtype::i32, {words_for(from.outs(), into.bits), into.groups});
  into.zeros = *zeros;
}

weight_codes packed_rows(const parts& from, const code_settings& settings) {
  constexpr std::string_view part = "weight_packed";
  weight_codes codes{.layout = code_layout::by_output, .outs = from.outs(), .ins = from.ins(), .codes = from.get(part)};
  if (codes.codes.shape.size() != 2) from.refuse_shape(part);
  codes.bits = width_of(from, part, codes.codes.shape[1], from.ins());
  from.expect(part, dtype::i32, {from.outs(), words_for(from.ins(), codes.bits)});
  read_scales(from, "weight_scale", settings, codes);
  read_zeros(from, codes);
  if (from.find("weight_g_idx")) read_groups(from, "weight_g_idx", codes);
  return codes;
}

/// One byte a weight, under the weight's own name.
weight_codes byte_rows(const parts& from, const code_settings& settings) {
  weight_codes codes{.bits = 8, .outs = from.outs(), .ins = from.ins(), .codes = from.get("weight")};
  const bool are_floats = codes.codes.type == dtype::f8_e4m3;
  codes.layout = are_floats ? code_layout::floats : code_layout::bytes;
  from.expect("weight", codes.codes.type, {from.outs(), from.ins()});
  read_scales(from, from.find("weight_scale_inv") ? "weight_scale_inv" : "weight_scale", settings, codes);
  if (!are_floats) read_zeros(from, codes);
  return codes;
}

}  // namespace

weight_codes::line weight_codes::line_of(std::int64_t out, std::int64_t of_group) const {
  const float scale = scale_of(*this, out, of_group);
  if (layout == code_layout::e2m1) return {scale, 0.0f};
  return {scale, scale * static_cast<float>(half_of(*this) - zero_of(*this, out, of_group))};
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
    default:
      for (std::int64_t i = 0; i < ins; ++i)
        to[i] = static_cast<std::uint8_t>(byte_at(codes, out * ins + i) + half_of(*this));
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
      to[i] = layout == code_layout::e2m1 ? e2m1_to_f32(code) : static_cast<float>(code - half_of(*this));
    }
  }
  for (std::int64_t i = 0; i < ins; ++i) {
    const std::int64_t g = group > 0 ? i / group : groups_of[to_size(i)];
    to[i] = lines[to_size(g)].mid + lines[to_size(g)].scale * to[i];
  }
}

std::optional<weight_codes> find_codes(const tensor_set& set, const std::string& name, std::int64_t outs,
                                       std::int64_t ins, const code_settings& settings) {
  const parts from(set, name, outs, ins);
  switch (settings.format) {
    case code_format::none:
    case code_format::mxfp4:  // has other names: find_mxfp4
      return std::nullopt;
    case code_format::gptq:
    case code_format::gptq_v2:
    case code_format::awq:
      if (!from.find("qweight")) return std::nullopt;
      return by_columns(from, settings);
    default:
      if (from.find("weight_packed")) return packed_rows(from, settings);
      const tensor_view* weight = from.find("weight");
      if (!weight || (weight->type != dtype::i8 && weight->type != dtype::f8_e4m3)) return std::nullopt;
      return byte_rows(from, settings);
  }
}

std::optional<weight_codes> find_mxfp4(const tensor_set& set, const std::string& stem, const mxfp4_rows& which,
                                       std::int64_t outs, std::int64_t ins) {
  constexpr std::int64_t group = 32;
  const std::string blocks_name = stem + "_blocks", scales_name = stem + "_scales";
  const tensor_view *blocks = set.find(blocks_name), *scales = set.find(scales_name);
  if (!blocks) return std::nullopt;
  if (!scales) refuse("{}: tensor \"{}\" needs \"{}\" beside it", set.file_of(*blocks), blocks_name, scales_name);
  const auto expect = [&](const std::string& name, const tensor_view& tensor, const std::vector<std::int64_t>& shape) {
    if (tensor.type != dtype::u8 || tensor.shape != shape || ins % group != 0)
      refuse("{}: tensor \"{}\", {} {}, should be U8 {} for {} matrices of [{}, {}] in MXFP4", set.file_of(tensor),
             name, name_of(tensor.type), text_of(tensor.shape), text_of(shape), which.matrices, which.rows, ins);
  };
  expect(blocks_name, *blocks, {which.matrices, which.rows, ins / group, group / 2});
  expect(scales_name, *scales, {which.matrices, which.rows, ins / group});
  return weight_codes{.layout = code_layout::e2m1,
                      .outs = outs,
                      .ins = ins,
                      .groups = ins / group,
                      .group = group,
                      .first_row = which.matrix * which.rows + which.first,
                      .row_step = which.step,
                      .codes = *blocks,
                      .scales = *scales};
}

}  // namespace troupe
