#include "model/formats/tensors/safetensors.hpp"
#include "base/to_size.hpp"

#include <gmock/gmock.h>

#include "tests/model/formats/fixtures.hpp"

namespace troupe {
namespace {

using test::bytes_of;
using test::raw;
using test::refusal;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, std::size_t data) {
  return raw<std::uint64_t>(header.size()) + header + std::string(data, '\1');
}

std::string refusal_of(const std::string& file) {
  return refusal([&] {
    tensor_set set;
    parse_safetensors(bytes_of(file), "x.safetensors", set);
  });
}

TEST(safetensors, reads_what_was_written) {
  const test::temp_folder folder;
  const std::string a = raw(1.5f) + raw(-2.0f), b = "\1\2\3";
  const std::vector<tensor_description> tensors = {
      {"a", dtype::f32, {1, 2}}, {"b", dtype::u8, {3}}, {"c", dtype::f16, {0, 4}}};
  const std::vector<std::span<const std::byte>> data = {bytes_of(a), bytes_of(b), {}};
  write_safetensors(folder.path() / "x.safetensors", tensors, data, {{"format", "pt"}, {"say", "\"hi\"\n"}});
  const auto set = open_safetensors(folder.path() / "x.safetensors");
  ASSERT_EQ(set.tensors.size(), 3u);
  EXPECT_EQ(set.metadata.at("say"), "\"hi\"\n");
  EXPECT_EQ(set.find("a")->shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(std::memcmp(set.find("a")->data.data(), a.data(), a.size()), 0);
  EXPECT_EQ(set.find("b")->type, dtype::u8);
  EXPECT_EQ(set.find("c")->elements(), 0);
  EXPECT_EQ(set.find("d"), nullptr);
  EXPECT_EQ(set.file_of(*set.find("b")), (folder.path() / "x.safetensors").string());
}

TEST(safetensors, header_places_the_first_tensor_at_a_multiple_of_64) {
  const std::vector<tensor_description> tensors = {{"a", dtype::f32, {3}}};
  for (int i = 0; i < 70; ++i) {
    const auto header = safetensors_header(tensors, {{"pad", std::string(to_size(i), 'x')}});
    EXPECT_EQ(header.size() % 64, 0u);
    tensor_set set;
    const auto file = header + std::string(12, '\0');
    parse_safetensors(bytes_of(file), "x", set);
    EXPECT_EQ(set.find("a")->data.size(), 12u);
  }
}

TEST(safetensors, writer_refuses_what_the_format_cannot_say) {
  const std::vector<tensor_description> twice = {{"a", dtype::f32, {1}}, {"a", dtype::f32, {1}}};
  const std::vector<tensor_description> blocks = {{"a", dtype::q8_0, {32}}};
  EXPECT_THAT(refusal([&] { safetensors_header(twice, {}); }), HasSubstr("\"a\""));
  EXPECT_THAT(refusal([&] { safetensors_header(blocks, {}); }), HasSubstr("Q8_0"));
}

TEST(safetensors, steps_over_tensors_of_other_types) {
  tensor_set set;
  const auto file = file_of(R"({"m":{"dtype":"BOOL","shape":[4],"data_offsets":[0,4]},
    "i":{"dtype":"I64","shape":[1],"data_offsets":[4,12]},"w":{"dtype":"F32","shape":[],"data_offsets":[12,16]}})",
                            16);
  parse_safetensors(bytes_of(file), "x", set);
  EXPECT_EQ(set.unread.at("m"), "BOOL");
  EXPECT_EQ(set.unread.at("i"), "I64");
  EXPECT_EQ(set.find("w")->elements(), 1);
}

struct bad_case {
  std::string name, file, says;
};
class bad_safetensors : public ::testing::TestWithParam<bad_case> {};

TEST_P(bad_safetensors, is_refused_with_its_cause) {
  EXPECT_THAT(refusal_of(GetParam().file), ::testing::AllOf(HasSubstr("x.safetensors"), HasSubstr(GetParam().says)));
}

std::string one(const std::string& fields) {
  return "{\"t\":{" + fields + "}}";
}

INSTANTIATE_TEST_SUITE_P(
    cases, bad_safetensors,
    ::testing::Values(
        bad_case{"empty", "", "too short"}, bad_case{"cut_length", "\1\0\0", "too short"},
        bad_case{"huge_header", raw<std::uint64_t>(~0ull) + "{}", "at most"},
        bad_case{"header_past_end", raw<std::uint64_t>(1000) + "{}", "cut off"},
        bad_case{"no_object", file_of("[]", 0), "not a JSON object"},
        bad_case{"broken_json", file_of("{\"a\":", 0), "no valid JSON"},
        bad_case{"deep", file_of("{\"t\":" + std::string(1000, '[') + std::string(1000, ']') + "}", 0), "deeper"},
        bad_case{"key_twice", file_of(R"({"t":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"t":{}})", 0), "twice"},
        bad_case{"field_twice", file_of(one(R"("dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1])"), 1),
                 "twice"},
        bad_case{"no_dtype", file_of(one(R"("shape":[1],"data_offsets":[0,1])"), 1), "lacks dtype"},
        bad_case{"type_unknown", file_of(one(R"("dtype":"F33","shape":[1],"data_offsets":[0,1])"), 1), "F33"},
        bad_case{"type_number", file_of(one(R"("dtype":5,"shape":[1],"data_offsets":[0,1])"), 1), "dtype"},
        bad_case{"extra_field", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1],"q":1)"), 1), "\"q\""},
        bad_case{"shape_negative", file_of(one(R"("dtype":"U8","shape":[-1],"data_offsets":[0,1])"), 1), "shape"},
        bad_case{"shape_text", file_of(one(R"("dtype":"U8","shape":"a","data_offsets":[0,1])"), 1), "shape"},
        bad_case{"shape_float", file_of(one(R"("dtype":"U8","shape":[1.5],"data_offsets":[0,1])"), 1), "shape"},
        bad_case{"shape_overflow",
                 file_of(one(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,1])"), 1),
                 "larger than"},
        bad_case{"shape_overflow_other",
                 file_of(one(R"("dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,1])"), 1), "larger than"},
        bad_case{"one_offset", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[0])"), 1), "data_offsets"},
        bad_case{"offsets_reversed", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[1,0])"), 1),
                 "data_offsets"},
        bad_case{"offset_giant", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[0,18446744073709551615])"), 1),
                 "data_offsets"},
        bad_case{"past_end", file_of(one(R"("dtype":"U8","shape":[9],"data_offsets":[0,9])"), 5), "cut off"},
        bad_case{"size_mismatch", file_of(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), 4),
                 "takes 8 bytes"},
        bad_case{"hole_first", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[1,2])"), 2), "hole"},
        bad_case{"hole_last", file_of(one(R"("dtype":"U8","shape":[1],"data_offsets":[0,1])"), 2), "behind the last"},
        bad_case{"overlap",
                 file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                             "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                         3),
                 "overlaps"},
        bad_case{"metadata_list", file_of(R"({"__metadata__":[]})", 0), "__metadata__"},
        bad_case{"metadata_number", file_of(R"({"__metadata__":{"a":1}})", 0), "__metadata__"}),
    [](const auto& info) { return info.param.name; });

TEST(safetensors, reads_all_shards_of_an_index) {
  const test::temp_folder folder;
  test::weight_writer a, b;
  a.add("one", {2});
  b.add("two", {3});
  a.write(folder.path() / "m-1.safetensors");
  b.write(folder.path() / "m-2.safetensors");
  folder.write("model.safetensors.index.json",
               R"({"metadata":{},"weight_map":{"one":"m-1.safetensors","two":"m-2.safetensors"}})");
  const auto set = open_safetensors(folder.path());
  EXPECT_EQ(set.files.size(), 2u);
  EXPECT_EQ(set.file_of(*set.find("two")), (folder.path() / "m-2.safetensors").string());
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"left":"m-1.safetensors","one":"m-1.safetensors","two":"m-2.safetensors"}})");
  EXPECT_EQ(open_safetensors(folder.path()).tensors.size(), 2u) << "what no shard holds is no tensor";
}

TEST(safetensors, refuses_an_index_that_does_not_fit_its_shards) {
  const test::temp_folder folder;
  test::weight_writer a, b;
  a.add("one", {2});
  a.write(folder.path() / "m-1.safetensors");
  a.write(folder.path() / "m-2.safetensors");
  b.add("two", {2});
  b.write(folder.path() / "m-4.safetensors");
  const auto with = [&](const std::string& index) {
    folder.write("model.safetensors.index.json", index);
    return refusal([&] { open_safetensors(folder.path()); });
  };
  for (const char* shards : {R"("one":"m-1.safetensors","two":"m-1.safetensors","more":"m-4.safetensors")",
                             R"("one":"m-4.safetensors","two":"m-4.safetensors","more":"m-1.safetensors")"})
    EXPECT_THAT(with(fmt::format(R"({{"weight_map":{{{}}}}})", shards)),
                AllOf(HasSubstr("should hold the tensor"), HasSubstr("m-1.safetensors"), HasSubstr("m-4.safetensors")));
  EXPECT_THAT(with(R"({"weight_map":{"one":"m-1.safetensors","x":"m-2.safetensors"}})"), HasSubstr("earlier file"));
  EXPECT_THAT(with(R"({"weight_map":{"one":"../m-1.safetensors"}})"), HasSubstr("plain file name"));
  EXPECT_THAT(with(R"({"weight_map":{"one":"/etc/passwd"}})"), HasSubstr("plain file name"));
  EXPECT_THAT(with(R"({"weight_map":{"one":".."}})"), HasSubstr("plain file name"));
  EXPECT_THAT(with(R"({"weight_map":{"one":"m-3.safetensors"}})"), HasSubstr("m-3.safetensors"));
  EXPECT_THAT(with(R"({"weight_map":{"one":3}})"), HasSubstr("weight_map"));
  EXPECT_THAT(with("{}"), HasSubstr("weight_map"));
  EXPECT_THAT(with("[1]"), HasSubstr("JSON object"));
}

TEST(safetensors, names_the_remedy_where_only_pickled_weights_lie) {
  const test::temp_folder folder;
  EXPECT_THAT(refusal([&] { open_safetensors(folder.path()); }), HasSubstr("neither"));
  folder.write("pytorch_model.bin", "x");
  EXPECT_THAT(refusal([&] { open_safetensors(folder.path()); }), HasSubstr("pickled"));
}

}  // namespace
}  // namespace troupe
