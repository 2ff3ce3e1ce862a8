#include "model/formats/gguf/gguf.hpp"
#include "base/to_size.hpp"

#include <filesystem>

#include <gmock/gmock.h>

#include "model/formats/model_config.hpp"
#include "tests/base/places.hpp"
#include "tests/model/formats/gguf/gguf_builder.hpp"

namespace troupe {
namespace {

using test::bytes_of;
using test::gguf_builder;
using test::raw;
using test::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

gguf_file parse(const std::string& bytes) {
  gguf_file file;
  parse_gguf(bytes_of(bytes), "x.gguf", file);
  return file;
}

std::string refusal_of(const std::string& bytes) {
  return refusal([&] { parse(bytes); });
}

std::string list(std::uint32_t type, std::uint64_t count, const std::string& data) {
  return raw(type) + raw(count) + data;
}

gguf_builder with_all_types() {
  gguf_builder file;
  file.key("u8", 0, raw<std::uint8_t>(200)).key("i8", 1, raw<std::int8_t>(-3)).key("u16", 2, raw<std::uint16_t>(60000));
  file.key("i16", 3, raw<std::int16_t>(-4)).u32("u32", 4000000000u).key("i32", 5, raw<std::int32_t>(-5));
  file.f32("f32", 0.5f).key("true", 7, "\1").string("text", "hé").key("u64", 10, raw<std::uint64_t>(1));
  file.key("i64", 11, raw<std::int64_t>(-6)).key("f64", 12, raw(0.25));
  file.key("i32s", 9, list(5, 2, raw(1) + raw(-2))).key("f32s", 9, list(6, 1, raw(2.5f)));
  file.key("bools", 9, list(7, 2, std::string("\1\0", 2))).strings("texts", {"a", "", "c"});
  file.key("none", 9, list(8, 0, ""));
  return file;
}

void expect_all_types(const gguf_file& file) {
  EXPECT_EQ(file.get<std::int64_t>("u8"), 200);
  EXPECT_EQ(file.get<std::int64_t>("i8"), -3);
  EXPECT_EQ(file.get<std::int64_t>("u16"), 60000);
  EXPECT_EQ(file.get<std::int64_t>("i16"), -4);
  EXPECT_EQ(file.get<std::int64_t>("u32"), 4000000000);
  EXPECT_EQ(file.get<std::int64_t>("i32"), -5);
  EXPECT_EQ(file.get<std::int64_t>("u64"), 1);
  EXPECT_EQ(file.get<std::int64_t>("i64"), -6);
  EXPECT_EQ(file.get<double>("f32"), 0.5);
  EXPECT_EQ(file.get<double>("f64"), 0.25);
  EXPECT_EQ(file.get<bool>("true"), true);
  EXPECT_EQ(file.get<std::string>("text"), "hé");
  EXPECT_THAT(*file.get<std::vector<std::int64_t>>("i32s"), ElementsAre(1, -2));
  EXPECT_THAT(*file.get<std::vector<double>>("f32s"), ElementsAre(2.5));
  EXPECT_THAT(*file.get<std::vector<bool>>("bools"), ElementsAre(true, false));
  EXPECT_THAT(*file.get<std::vector<std::string>>("texts"), ElementsAre("a", "", "c"));
  EXPECT_TRUE(file.get<std::vector<std::string>>("none")->empty());
}

TEST(gguf, reads_every_type_of_value) {
  for (const std::uint32_t version : {2u, 3u}) {
    auto builder = with_all_types();
    builder.version = version;
    const auto bytes = builder.build();
    const auto file = parse(bytes);
    expect_all_types(file);
    EXPECT_EQ(file.get<bool>("absent"), std::nullopt);
    EXPECT_THAT(refusal([&] { file.get<std::string>("u8"); }), HasSubstr("\"u8\" should be a text"));
  }
}

TEST(gguf, turns_shapes_round_and_places_tensors) {
  gguf_builder builder;
  builder.alignment = 64;
  builder.u32("general.alignment", 64).floats("a", {3, 2}, 10).floats("b", {5}, 20);
  const auto bytes = builder.build();
  const auto file = parse(bytes);
  const auto* a = file.tensors.find("a");
  EXPECT_THAT(a->shape, ElementsAre(2, 3));
  float values[5];
  to_floats(a->type, a->data.data(), 5, values);
  EXPECT_EQ(values[4], 14.0f);
  to_floats(dtype::f32, file.tensors.find("b")->data.data(), 5, values);
  EXPECT_EQ(values[0], 20.0f);
}

gguf_builder piece_of_two(std::uint32_t number, const std::string& tensor) {
  return gguf_builder().u32("split.count", 2).u32("split.no", number).floats(tensor, {4}, 10.0f * number);
}

TEST(gguf, is_put_together_from_its_pieces) {
  const test::temp_folder folder;
  const auto first = folder.write("m-00001-of-00002.gguf", piece_of_two(0, "a").string("general.name", "m").build());
  EXPECT_THAT(refusal([&] { open_gguf(first); }), HasSubstr("m-00002-of-00002.gguf"));
  const auto second = folder.write("m-00002-of-00002.gguf", piece_of_two(1, "b").build());
  const auto file = open_gguf(first);
  float value = 0;
  for (const auto& [name, wanted] : {std::pair("a", 0.0f), std::pair("b", 10.0f)}) {
    const auto* tensor = file.tensors.find(name);
    ASSERT_TRUE(tensor);
    to_floats(tensor->type, tensor->data.data(), 1, &value);
    EXPECT_EQ(value, wanted);
  }
  EXPECT_EQ(file.tensors.file_of(*file.tensors.find("b")), second.string());
  EXPECT_EQ(file.metadata.size(), 1u) << "which is a whole file's";
}

TEST(gguf, is_refused_where_its_pieces_do_not_fit) {
  const test::temp_folder folder;
  const auto first = folder.write("m-00001-of-00002.gguf", piece_of_two(0, "a").build());
  const auto says = [&](const gguf_builder& second) {
    folder.write("m-00002-of-00002.gguf", second.build());
    return refusal([&] { open_gguf(first); });
  };
  EXPECT_THAT(says(piece_of_two(1, "a")), HasSubstr("the tensor \"a\""));
  EXPECT_THAT(says(piece_of_two(0, "b")), HasSubstr("m-00002-of-00002.gguf: does not belong to"));
  EXPECT_THAT(refusal([&] { open_gguf(folder.write("m.gguf", piece_of_two(0, "a").build())); }),
              HasSubstr("NAME-00001-of-00002.gguf"));
  EXPECT_THAT(refusal([&] { open_gguf(folder.write("n-00001-of-00002.gguf", piece_of_two(1, "b").build())); }),
              HasSubstr("name the first"));
  const auto last_number = gguf_builder().u32("split.count", 2).key("split.no", 11, raw(INT64_MAX)).build();
  EXPECT_THAT(refusal([&] { open_gguf(folder.write("l-00001-of-00002.gguf", last_number)); }),
              HasSubstr("name the first"));
}

class gguf_blocks : public ::testing::TestWithParam<std::string> {};

// scripts/make-gguf-blocks made the file: random blocks, and what the reference reads from them.
TEST_P(gguf_blocks, become_the_floats_of_the_reference) {
  const auto file = open_gguf(test::fixtures / "gguf_blocks.gguf");
  const auto* blocks = file.tensors.find(GetParam());
  const auto* expected = file.tensors.find(GetParam() + ".floats");
  ASSERT_TRUE(blocks && expected);
  EXPECT_EQ(name_of(blocks->type), GetParam());
  const auto count = to_size(blocks->elements());
  ASSERT_EQ(count, 512);
  std::vector<float> values(count), wanted(count);
  to_floats(blocks->type, blocks->data.data(), blocks->elements(), values.data());
  to_floats(expected->type, expected->data.data(), expected->elements(), wanted.data());
  EXPECT_EQ(values, wanted);
}

INSTANTIATE_TEST_SUITE_P(gguf, gguf_blocks,
                         ::testing::Values("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                                           "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"),
                         [](const auto& info) { return info.param; });

TEST(gguf, metadata_alone_says_the_same) {
  const auto bytes = with_all_types().floats("token_embd.weight", {4, 7}).build();
  const auto source = parse(bytes);
  const auto bare = parse(metadata_only_gguf(source));
  EXPECT_TRUE(bare.tensors.tensors.empty());
  expect_all_types(bare);
  EXPECT_EQ(bare.get<std::int64_t>("troupe.vocab_size"), 7);
  EXPECT_EQ(bare.get<bool>("troupe.tied_embeddings"), true);
  EXPECT_EQ(parse(metadata_only_gguf(bare)).metadata, bare.metadata);
}

TEST(gguf, every_cut_is_refused) {
  const auto whole = with_all_types().floats("a", {3, 2}).build();
  ASSERT_EQ(refusal_of(whole), "");
  // The last tensor ends 8 bytes before the padding does.
  for (std::size_t size = 0; size < whole.size() - 8; ++size) EXPECT_NE(refusal_of(whole.substr(0, size)), "") << size;
}

struct bad_case {
  std::string name, file, says;
};
class bad_gguf : public ::testing::TestWithParam<bad_case> {};

TEST_P(bad_gguf, is_refused_with_its_cause) {
  EXPECT_THAT(refusal_of(GetParam().file), ::testing::AllOf(HasSubstr("x.gguf"), HasSubstr(GetParam().says)));
}

template <class Change>
std::string changed(const Change& change) {
  gguf_builder builder;
  change(builder);
  return builder.build();
}

const std::string page(64, '\0');

INSTANTIATE_TEST_SUITE_P(
    cases, bad_gguf,
    ::testing::Values(
        bad_case{"empty", "", "too short"}, bad_case{"magic", changed([](auto& b) { b.magic = "GGML"; }), "GGUF"},
        bad_case{"version_1", changed([](auto& b) { b.version = 1; }), "version 1"},
        bad_case{"version_4", changed([](auto& b) { b.version = 4; }), "version 4"},
        bad_case{"big_endian", changed([](auto& b) { b.version = 3u << 24; }), "big-endian"},
        bad_case{"many_tensors", changed([](auto& b) { b.tensor_count = ~0ull; }), "number of tensors"},
        bad_case{"many_keys", changed([](auto& b) { b.key_count = 1ull << 60; }), "number of metadata keys"},
        bad_case{"more_tensors_than_there", changed([](auto& b) { b.string("a", page + page).tensor_count = 1; }),
                 "x.gguf"},
        bad_case{"long_text", changed([](auto& b) { b.key("a", 8, raw<std::uint64_t>(1ull << 62)); }), "\"a\""},
        bad_case{"text_past_end", changed([](auto& b) { b.key("a", 8, raw<std::uint64_t>(1000)); }), "cut off"},
        bad_case{"long_list", changed([](auto& b) { b.key("a", 9, list(0, 1ull << 40, "")); }), "\"a\" counts"},
        bad_case{"list_past_end", changed([](auto& b) { b.key("a", 9, list(10, 100, "")); }), "\"a\" counts"},
        bad_case{"list_of_lists", changed([](auto& b) { b.key("a", 9, list(9, 1, page)); }), "list of lists"},
        bad_case{"value_type", changed([](auto& b) { b.key("a", 13, page); }), "value type 13"},
        bad_case{"list_type", changed([](auto& b) { b.key("a", 9, list(77, 1, page)); }), "value type 77"},
        bad_case{"bool_2", changed([](auto& b) { b.key("a", 7, "\2"); }), "true or false"},
        bad_case{"u64_large", changed([](auto& b) { b.key("a", 10, raw(~0ull)); }), "too large"},
        bad_case{"key_twice", changed([](auto& b) { b.u32("a", 1).u32("a", 2); }), "\"a\" twice"},
        bad_case{"alignment_0", changed([](auto& b) { b.u32("general.alignment", 0); }), "alignment"},
        bad_case{"alignment_odd", changed([](auto& b) { b.u32("general.alignment", 48); }), "alignment"},
        bad_case{"alignment_huge", changed([](auto& b) { b.u32("general.alignment", 1u << 31); }), "alignment"},
        bad_case{"alignment_text", changed([](auto& b) { b.string("general.alignment", "8"); }), "alignment"},
        bad_case{"no_dimension", changed([](auto& b) { b.tensor("t", {}, 0, page); }), "0 dimensions"},
        bad_case{"five_dimensions", changed([](auto& b) {
                   b.tensor("t", {1, 1, 1, 1, 1}, 0, page);
                 }),
                 "5 dimensions"},
        bad_case{"type_iq2_xs", changed([](auto& b) { b.tensor("t", {256}, 17, page); }), "\"t\": has the type IQ2_XS"},
        bad_case{"cut_q4_k", changed([](auto& b) {
                   b.tensor("t", {256, 40}, 12, page);
                 }),
                 "5760 bytes"},
        bad_case{"block_tail_k", changed([](auto& b) { b.tensor("t", {128}, 12, page); }), "blocks of 256"},
        bad_case{"type_nvfp4", changed([](auto& b) { b.tensor("t", {256}, 40, page); }), "NVFP4"},
        bad_case{"type_unknown", changed([](auto& b) { b.tensor("t", {256}, 999, page); }), "999"},
        bad_case{"block_tail", changed([](auto& b) { b.tensor("t", {33}, 8, page); }), "blocks of 32"},
        bad_case{"size_negative", changed([](auto& b) { b.tensor("t", {1ull << 63}, 0, page); }), "negative"},
        bad_case{"size_overflow", changed([](auto& b) {
                   b.tensor("t", {1ull << 62, 16}, 0, page);
                 }),
                 "larger than"},
        bad_case{"data_cut", changed([](auto& b) { b.tensor("t", {17}, 0, page); }), "cut off"},
        bad_case{"offset_far", changed([](auto& b) { b.tensor_at("t", {1}, 0, ~31ull); }), "cut off"},
        bad_case{"offset_odd", changed([](auto& b) { b.tensor("a", {1}, 0, page).tensor_at("t", {1}, 0, 7); }),
                 "no multiple of 32"},
        bad_case{"overlap", changed([](auto& b) { b.tensor("a", {16}, 0, page).tensor_at("t", {1}, 0, 32); }),
                 "overlaps"},
        bad_case{"name_twice", changed([](auto& b) { b.tensor("t", {16}, 0, page).tensor("t", {16}, 0, page); }),
                 "twice"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace troupe
