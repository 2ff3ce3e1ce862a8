#include "model/formats/tensors/weight_codes.hpp"
#include "base/to_size.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>

#include "model/formats/model_files.hpp"
#include "tests/model/formats/tensors/known_codes.hpp"

namespace troupe {
namespace {

using test::codes_in;
using test::known_codes;
using test::known_tensors;
using test::raw;
using test::refusal;
using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_weights(const known_codes& known, const known_tensors& file, code_format format) {
  const auto codes = codes_in(file, known.outs, known.ins, {.format = format});
  ASSERT_TRUE(codes);
  std::vector<float> row(to_size(known.ins));
  for (int out = 0; out < known.outs; ++out) {
    codes->read_row(out, row.data());
    for (int i = 0; i < known.ins; ++i)
      ASSERT_EQ(row[to_size(i)], known.weight(out, i)) << "row " << out << ", input " << i;
  }
}

TEST(weight_codes, of_gptq_are_the_weights_it_meant) {
  for (const int bits : {4, 8}) {
    const known_codes known = known_codes::drawn(bits, 24, 64, 2, false);
    expect_weights(known, known.as_gptq(true), code_format::gptq);
    expect_weights(known, known.as_gptq(false), code_format::gptq_v2);
  }
}

TEST(weight_codes, of_gptq_may_have_groups_that_are_no_runs_of_inputs) {
  known_codes known = known_codes::drawn(4, 8, 32, 4, true);
  for (int i = 0; i < known.ins; ++i) known.groups_of[to_size(i)] = i * 5 % 4;
  const known_tensors file = known.as_gptq(true);
  expect_weights(known, file, code_format::gptq);
  EXPECT_EQ(codes_in(file, 8, 32, {.format = code_format::gptq})->group, 0);
}

/// So that they need no zero points when they are computed with.
TEST(weight_codes, of_gptq_that_says_they_are_symmetric_have_no_zero_points) {
  const code_settings settings{.format = code_format::gptq, .is_symmetric = true};
  for (const int bits : {4, 8}) {
    const auto file = known_codes::drawn(bits, 16, 64, 2, true).as_gptq(true);
    EXPECT_FALSE(codes_in(file, 16, 64, settings)->zeros);
    const auto other = known_codes::drawn(bits, 16, 64, 2, false).as_gptq(true);
    EXPECT_THAT(refusal([&] { codes_in(other, 16, 64, settings); }),
                AllOf(HasSubstr("\"w.qzeros\""), HasSubstr("\"sym\": true")));
  }
}

TEST(weight_codes, of_awq_lie_shuffled) {
  const known_codes known = known_codes::drawn(4, 24, 64, 2, false);
  expect_weights(known, known.as_awq(), code_format::awq);
}

TEST(weight_codes, of_compressed_tensors_are_packed_or_bytes) {
  for (const bool has_zeros : {false, true}) {
    for (const int bits : {4, 8}) {
      const known_codes known = known_codes::drawn(bits, 20, 64, 2, !has_zeros);
      expect_weights(known, known.as_packed_rows(has_zeros), code_format::compressed);
    }
    const known_codes known = known_codes::drawn(8, 5, 12, 1, !has_zeros);
    expect_weights(known, known.as_bytes(has_zeros), code_format::compressed);
  }
}

TEST(weight_codes, of_bytes_may_have_packed_zero_points) {
  const known_codes known = known_codes::drawn(8, 20, 64, 2, false);
  const known_tensors packed = known.as_packed_rows(true);
  known_tensors file = known.as_bytes(false);
  file.set.tensors["w.weight_zero_point"] = packed.set.tensors.at("w.weight_zero_point");
  expect_weights(known, file, code_format::compressed);
}

/// The experts of gpt-oss: 3 matrices of 8 rows, 64 inputs each.
known_tensors mxfp4_experts() {
  known_tensors file;
  std::string blocks, scales;
  for (int i = 0; i < 3 * 8 * 2 * 16; ++i) blocks += static_cast<char>(i * 37 % 256);
  for (int i = 0; i < 3 * 8 * 2; ++i) scales += static_cast<char>(100 + i);
  file.add("experts.up_blocks", dtype::u8, {3, 8, 2, 16}, blocks);
  file.add("experts.up_scales", dtype::u8, {3, 8, 2}, scales);
  return file;
}

/// A row of all matrices, counted through. Of each byte the low four bits come first.
float mxfp4_weight(int row, int in) {
  constexpr float magnitudes[] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  const int code = (row * 32 + in / 2) * 37 % 256 >> in % 2 * 4 & 15;
  return std::ldexp(code < 8 ? magnitudes[code] : -magnitudes[code - 8], 100 + row * 2 + in / 32 - 127);
}

TEST(weight_codes, of_mxfp4_may_be_some_rows_of_one_of_several_matrices) {
  const known_tensors file = mxfp4_experts();
  std::vector<float> row(64);
  for (int matrix = 0; matrix < 3; ++matrix)
    for (int first = 0; first < 2; ++first) {
      const auto codes = find_mxfp4(file.set, "experts.up", {3, 8, matrix, first, 2}, 4, 64);
      ASSERT_TRUE(codes);
      for (int out = 0; out < 4; ++out) {
        codes->read_row(out, row.data());
        for (int in = 0; in < 64; ++in) EXPECT_EQ(row[to_size(in)], mxfp4_weight(matrix * 8 + first + 2 * out, in));
      }
    }
  EXPECT_FALSE(find_mxfp4(file.set, "experts.down", {3, 8, 0}, 8, 64));
}

TEST(weight_codes, of_mxfp4_are_refused_by_the_tensor_that_does_not_fit) {
  known_tensors file = mxfp4_experts();
  const auto found = [&](std::int64_t rows, std::int64_t ins) {
    return refusal([&] { find_mxfp4(file.set, "experts.up", {3, rows, 0}, rows, ins); });
  };
  EXPECT_THAT(found(9, 64), AllOf(HasSubstr("\"experts.up_blocks\", U8 [3, 8, 2, 16], should be U8 [3, 9, 2, 16]")));
  EXPECT_THAT(found(8, 70), HasSubstr("of [8, 70] in MXFP4"));
  file.set.tensors["experts.up_scales"].shape = {3, 16};
  EXPECT_THAT(found(8, 64), HasSubstr("\"experts.up_scales\", U8 [3, 16], should be U8 [3, 8, 2]"));
  file.set.tensors.erase("experts.up_scales");
  EXPECT_THAT(found(8, 64), HasSubstr("\"experts.up_blocks\" needs \"experts.up_scales\" beside it"));
}

/// Heads of latent attention read some rows of a matrix the other way round.
TEST(weight_codes, may_be_read_by_columns_of_some_rows) {
  const known_codes known = known_codes::drawn(8, 24, 64, 2, false);
  const known_tensors file = known.as_gptq(true);
  weight_source source;
  source.codes = codes_in(file, known.outs, known.ins, {.format = code_format::gptq});
  source.tensor = source.codes->codes;
  source.outs = known.ins, source.ins = 5, source.rows.first_in = 7;
  source.rows.transposed = true;
  std::vector<float> rows(to_size(3 * source.ins));
  source.read_rows(10, 3, rows.data());
  for (int row = 0; row < 3; ++row)
    for (int in = 0; in < 5; ++in) EXPECT_EQ(rows[to_size(row * 5 + in)], known.weight(7 + in, 10 + row));
}

/// Of all values of eight bits but NaN; scales are of blocks of 4 x 8, of rows, or of all.
TEST(weight_codes, may_be_floats_of_eight_bits) {
  constexpr int outs = 6, ins = 20;
  std::string bytes;
  for (int i = 0; i < outs * ins; ++i) bytes += static_cast<char>(i % 126 + (i % 2 ? 128 : 0));
  const auto scales = [](int count) {
    std::vector<float> scales;
    for (int i = 0; i < count; ++i) scales.push_back(0.25f * static_cast<float>(i + 1));
    return scales;
  };
  const auto expect = [&](std::string_view name, std::vector<std::int64_t> shape, int count, auto&& place_of) {
    known_tensors file;
    file.add("w.weight", dtype::f8_e4m3, {outs, ins}, bytes);
    file.add_halves("w." + std::string(name), std::move(shape), scales(count));
    const auto codes = codes_in(file, outs, ins, {.format = code_format::fp8, .block_outs = 4, .block_ins = 8});
    ASSERT_TRUE(codes);
    std::vector<float> row(ins);
    for (int out = 0; out < outs; ++out) {
      codes->read_row(out, row.data());
      for (int i = 0; i < ins; ++i) {
        const auto bits = static_cast<std::uint8_t>(bytes[to_size(out * ins + i)]);
        ASSERT_EQ(row[to_size(i)], f8_to_f32(bits) * 0.25f * static_cast<float>(place_of(out, i) + 1));
      }
    }
  };
  expect("weight_scale_inv", {2, 3}, 6, [](int out, int i) { return out / 4 * 3 + i / 8; });
  expect("weight_scale", {outs, 1}, outs, [](int out, int) { return out; });
  expect("weight_scale", {outs}, outs, [](int out, int) { return out; });
  expect("weight_scale", {1}, 1, [](int, int) { return 0; });
  expect("weight_scale", {}, 1, [](int, int) { return 0; });
}

TEST(weight_codes, are_none_where_the_weight_is_there_in_numbers) {
  known_tensors file;
  file.add_halves("w.weight", {2, 2}, {1, 2, 3, 4});
  for (const auto format :
       {code_format::none, code_format::gptq, code_format::awq, code_format::compressed, code_format::fp8})
    EXPECT_FALSE(codes_in(file, 2, 2, {.format = format}));
}

TEST(weight_codes, that_do_not_fit_are_refused_by_tensor_and_shape) {
  const known_codes known = known_codes::drawn(4, 16, 64, 2, false);
  const auto says = [&](auto&& written, code_format format, auto&& spoil) {
    known_tensors file = written();
    spoil(file);
    return refusal([&] { codes_in(file, 16, 64, {.format = format}); });
  };
  const auto shaped = [](std::string name, std::vector<std::int64_t> shape) {
    return [=](known_tensors& file) { file.set.tensors.at(name).shape = shape; };
  };
  const auto without = [](std::string name) { return [=](known_tensors& file) { file.set.tensors.erase(name); }; };
  const auto gptq = [&] { return known.as_gptq(true); };
  const auto awq = [&] { return known.as_awq(); };
  const auto packed = [&] { return known.as_packed_rows(true); };
  EXPECT_THAT(says(gptq, code_format::gptq, shaped("w.qweight", {6, 16})),
              AllOf(HasSubstr("\"w.qweight\""), HasSubstr("[6, 16]"), HasSubstr("[16, 64]")));
  EXPECT_THAT(says(gptq, code_format::gptq, without("w.scales")), HasSubstr("\"w.scales\" is missing"));
  EXPECT_THAT(says(gptq, code_format::gptq, shaped("w.scales", {2, 15})), HasSubstr("w.scales"));
  EXPECT_THAT(says(gptq, code_format::gptq, shaped("w.qzeros", {1, 2})), HasSubstr("w.qzeros"));
  EXPECT_THAT(says(gptq, code_format::gptq, shaped("w.scales", {1, 16})), HasSubstr("w.g_idx"));
  EXPECT_THAT(says(awq, code_format::awq, shaped("w.qweight", {64, 16})), HasSubstr("w.qweight"));
  EXPECT_THAT(says(awq, code_format::awq, shaped("w.scales", {3, 16})), HasSubstr("w.scales"));
  EXPECT_THAT(says(packed, code_format::compressed, shaped("w.weight_packed", {16, 7})), HasSubstr("w.weight_packed"));
  EXPECT_THAT(says(packed, code_format::compressed, shaped("w.weight_scale", {4, 2})), HasSubstr("w.weight_scale"));
  EXPECT_THAT(says(packed, code_format::compressed, shaped("w.weight_zero_point", {2, 1})), HasSubstr("zero_point"));
  EXPECT_THAT(says(packed, code_format::compressed,
                   [](known_tensors& file) { file.set.tensors.at("w.weight_scale").type = dtype::i8; }),
              HasSubstr("w.weight_scale"));
}

/// Shapes that fit and others, of every part: what is not refused must read no byte beyond its tensors, as the address
/// sanitizer sees.
TEST(weight_codes, of_any_shapes_are_refused_or_read_within_their_bytes) {
  struct part {
    std::string name;
    std::vector<dtype> types;
    std::vector<std::vector<std::int64_t>> shapes;  // of a matrix [16, 32]
  };
  const std::vector<part> parts = {
      {"w.qweight", {dtype::i32}, {{4, 16}, {8, 16}, {32, 2}}},
      {"w.qzeros", {dtype::i32}, {{2, 2}, {2, 4}, {1, 2}}},
      {"w.scales", {dtype::f16, dtype::f32}, {{2, 16}, {1, 16}, {3, 16}}},
      {"w.g_idx", {dtype::i32}, {{32}, {16}}},
      {"w.weight_packed", {dtype::i32}, {{16, 4}, {16, 8}, {2, 32}}},
      {"w.weight_scale", {dtype::f16, dtype::i8}, {{16, 2}, {16, 1}, {2, 1}, {1}, {}, {16, 3}}},
      {"w.weight_zero_point", {dtype::i8, dtype::i32}, {{16, 2}, {16, 1}, {2, 2}, {4, 2}, {2, 1}}},
      {"w.weight_g_idx", {dtype::i32}, {{32}, {33}}},
      {"w.weight", {dtype::i8, dtype::f8_e4m3}, {{16, 32}, {32, 16}}},
  };
  constexpr code_format formats[] = {code_format::gptq, code_format::awq, code_format::compressed, code_format::fp8};
  std::mt19937 random(7);
  const auto one_of = [&](const auto& list) { return *(std::begin(list) + random() % std::size(list)); };
  int read = 0;
  for (int round = 0; round < 5000; ++round) {
    known_tensors file;
    for (const part& each : parts) {
      if (random() % 3 == 0) continue;
      const auto type = one_of(each.types);
      const auto shape = one_of(each.shapes);
      file.add(each.name, type, shape, std::string(byte_size(type, shape, each.name), static_cast<char>(random() % 2)));
    }
    refusal([&] {
      const auto codes = codes_in(file, 16, 32, {.format = one_of(formats), .block_outs = 8});
      std::vector<float> row(32);
      for (int out = 0; codes && out < 16; ++out) codes->read_row(out, row.data());
      read += codes.has_value();
    });
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace troupe
