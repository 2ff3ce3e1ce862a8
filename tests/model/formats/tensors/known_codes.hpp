#pragma once
#include <deque>
#include <functional>
#include <random>

#include "base/half.hpp"
#include "base/to_size.hpp"
#include "model/formats/tensors/weight_codes.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe::test {

/// Tensors in memory, by name.
class known_tensors {
 public:
  void add(const std::string& name, dtype type, std::vector<std::int64_t> shape, std::string bytes) {
    bytes_.push_back(std::move(bytes));
    set.tensors[name] = {type, std::move(shape), bytes_of(bytes_.back())};
  }
  void add_halves(const std::string& name, std::vector<std::int64_t> shape, const std::vector<float>& values) {
    std::string bytes;
    for (const float value : values) bytes += raw(f32_to_f16(value));
    add(name, dtype::f16, std::move(shape), bytes);
  }

  tensor_set set;

 private:
  std::deque<std::string> bytes_;
};

/// A matrix of codes that are known one by one, and what each program's files make of it. The weight is "w.weight".
struct known_codes {
  int bits;
  int outs, ins, groups;
  std::vector<int> codes = {};      // [outs, ins]
  std::vector<int> zeros = {};      // [outs, groups]
  std::vector<float> scales = {};   // [outs, groups], which f16 has
  std::vector<int> groups_of = {};  // [ins]

  static known_codes drawn(int bits, int outs, int ins, int groups, bool is_symmetric) {
    known_codes drawn{bits, outs, ins, groups};
    std::mt19937 random(static_cast<unsigned>(bits * outs + ins + groups));
    const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    for (int i = 0; i < outs * ins; ++i) drawn.codes.push_back(below(1 << bits));
    for (int i = 0; i < outs * groups; ++i) {
      drawn.zeros.push_back(is_symmetric ? 1 << (bits - 1) : 1 + below((1 << bits) - 1));
      drawn.scales.push_back(f16_to_f32(f32_to_f16(0.001f * static_cast<float>(1 + below(50)))));
    }
    for (int i = 0; i < ins; ++i) drawn.groups_of.push_back(i / (ins / groups));
    return drawn;
  }

  int per() const { return 32 / bits; }
  int code(int out, int in) const { return codes[to_size(out * ins + in)]; }
  int zero(int out, int group) const { return zeros[to_size(out * groups + group)]; }
  float scale(int out, int group) const { return scales[to_size(out * groups + group)]; }
  float weight(int out, int in) const {
    const int group = groups_of[to_size(in)];
    return scale(out, group) * static_cast<float>(code(out, in) - zero(out, group));
  }

  /// [rows, columns] of words, whose codes from the low bits on are those at (row, column, place).
  std::string words(int rows, int columns, const std::function<int(int, int, int)>& code_at) const {
    std::string bytes;
    for (int row = 0; row < rows; ++row)
      for (int column = 0; column < columns; ++column) {
        std::uint32_t word = 0;
        for (int place = 0; place < per(); ++place)
          word |= static_cast<std::uint32_t>(code_at(row, column, place)) << (bits * place);
        bytes += raw(word);
      }
    return bytes;
  }
  std::vector<float> scales_by_group() const {
    std::vector<float> turned;
    for (int g = 0; g < groups; ++g)
      for (int out = 0; out < outs; ++out) turned.push_back(scale(out, g));
    return turned;
  }

  known_tensors as_gptq(bool zeros_less_one) const {
    known_tensors file;
    const int words_of_outs = outs / per(), most = (1 << bits) - 1;
    file.add("w.qweight", dtype::i32, {ins / per(), outs},
             words(ins / per(), outs, [&](int row, int out, int place) { return code(out, row * per() + place); }));
    file.add("w.qzeros", dtype::i32, {groups, words_of_outs}, words(groups, words_of_outs, [&](int g, int w, int p) {
               return (zero(w * per() + p, g) - (zeros_less_one ? 1 : 0)) & most;
             }));
    file.add_halves("w.scales", {groups, outs}, scales_by_group());
    std::string list;
    for (const int g : groups_of) list += raw(static_cast<std::int32_t>(g));
    file.add("w.g_idx", dtype::i32, {ins}, list);
    return file;
  }
  known_tensors as_awq() const {
    constexpr int order[] = {0, 2, 4, 6, 1, 3, 5, 7};
    known_tensors file;
    file.add("w.qweight", dtype::i32, {ins, outs / 8},
             words(ins, outs / 8, [&](int in, int w, int place) { return code(w * 8 + order[place], in); }));
    file.add("w.qzeros", dtype::i32, {groups, outs / 8},
             words(groups, outs / 8, [&](int g, int w, int place) { return zero(w * 8 + order[place], g); }));
    file.add_halves("w.scales", {groups, outs}, scales_by_group());
    return file;
  }
  known_tensors as_packed_rows(bool has_zeros) const {
    known_tensors file;
    file.add("w.weight_packed", dtype::i32, {outs, ins / per()},
             words(outs, ins / per(), [&](int out, int w, int place) { return code(out, w * per() + place); }));
    file.add_halves("w.weight_scale", {outs, groups}, scales);
    const int rows = (outs + per() - 1) / per();
    if (has_zeros)
      file.add("w.weight_zero_point", dtype::i32, {rows, groups}, words(rows, groups, [&](int w, int g, int place) {
                 return w * per() + place < outs ? zero(w * per() + place, g) : 0;
               }));
    return file;
  }
  known_tensors as_bytes(bool has_zeros) const {
    known_tensors file;
    std::string bytes, points;
    for (const int each : codes) bytes += static_cast<char>(each - 128);
    for (const int each : zeros) points += static_cast<char>(each - 128);
    file.add("w.weight", dtype::i8, {outs, ins}, bytes);
    file.add_halves("w.weight_scale", {outs, groups}, scales);
    if (has_zeros) file.add("w.weight_zero_point", dtype::i8, {outs, groups}, points);
    return file;
  }
};

inline std::optional<weight_codes> codes_in(const known_tensors& file, std::int64_t outs, std::int64_t ins,
                                            code_settings settings) {
  return find_codes(file.set, "w.weight", outs, ins, settings);
}

}  // namespace troupe::test
