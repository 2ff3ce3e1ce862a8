#include "model/formats/mxfp4.hpp"

#include <cmath>

#include <gmock/gmock.h>

#include "tests/model/formats/known_codes.hpp"

namespace troupe {
namespace {

using test::known_tensors;
using test::refusal;
using ::testing::HasSubstr;

constexpr int matrices = 2, rows = 6, ins = 64;

int code_at(int row, int in) {
  return (row * 7 + in * 5) % 16;
}
int exponent_at(int row, int group) {
  return 120 + row + group;
}

/// Two matrices of six rows, all in one.
known_tensors written() {
  std::string blocks, scales;
  for (int row = 0; row < matrices * rows; ++row) {
    for (int in = 0; in < ins; in += 2) blocks += static_cast<char>(code_at(row, in) | code_at(row, in + 1) << 4);
    for (int group = 0; group < ins / 32; ++group) scales += static_cast<char>(exponent_at(row, group));
  }
  known_tensors file;
  file.add("w_blocks", dtype::u8, {matrices, rows, ins / 32, 16}, blocks);
  file.add("w_scales", dtype::u8, {matrices, rows, ins / 32}, scales);
  return file;
}

TEST(mxfp4, is_floats_of_four_bits_times_powers_of_two) {
  const known_tensors file = written();
  constexpr float values[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  // every other row of the second matrix
  const auto codes = find_mxfp4(file.set, "w", {matrices, rows, 1, 1, 2}, 3, ins);
  ASSERT_TRUE(codes);
  std::vector<float> row(ins);
  for (int out = 0; out < 3; ++out) {
    codes->read_row(out, row.data());
    for (int in = 0; in < ins; ++in) {
      const int whole = rows + 1 + 2 * out, code = code_at(whole, in);
      const float value = values[code & 7] * (code & 8 ? -1.0f : 1.0f);
      EXPECT_EQ(row[static_cast<std::size_t>(in)], std::ldexp(value, exponent_at(whole, in / 32) - 127));
    }
  }
}

TEST(mxfp4, is_none_where_the_weight_is_there_in_numbers) {
  EXPECT_FALSE(find_mxfp4(known_tensors().set, "w", {matrices, rows, 0}, rows, ins));
}

TEST(mxfp4, that_does_not_fit_is_refused_by_tensor_and_shape) {
  const auto says = [](auto&& spoil) {
    known_tensors file = written();
    spoil(file.set.tensors);
    return refusal([&] { find_mxfp4(file.set, "w", {matrices, rows, 0}, rows, ins); });
  };
  EXPECT_THAT(says([](auto& tensors) { tensors.erase("w_scales"); }), HasSubstr("needs \"w_scales\" beside it"));
  EXPECT_THAT(says([](auto& tensors) {
                tensors.at("w_blocks").shape = {2, 6, 1, 32};
              }),
              HasSubstr("\"w_blocks\", U8 [2, 6, 1, 32], should be U8 [2, 6, 2, 16] for 2 matrices of [6, 64]"));
  EXPECT_THAT(says([](auto& tensors) { tensors.at("w_scales").shape = {2, 6, 4}; }), HasSubstr("\"w_scales\""));
  EXPECT_THAT(says([](auto& tensors) { tensors.at("w_scales").type = dtype::i8; }), HasSubstr("I8"));
}

}  // namespace
}  // namespace troupe
