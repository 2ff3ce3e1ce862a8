// The codes of a matrix among a file's tensors.
#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/formats/tensors/weight_codes.hpp"

namespace troupe {
namespace {

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
    if (codes.zero_of(out, 0) != codes.half()) from.refuse_zeros();
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
    case code_format::compressed:
    case code_format::fp8:
      break;
  }
  if (from.find("weight_packed")) return packed_rows(from, settings);
  const tensor_view* weight = from.find("weight");
  if (!weight || (weight->type != dtype::i8 && weight->type != dtype::f8_e4m3)) return std::nullopt;
  return byte_rows(from, settings);
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
