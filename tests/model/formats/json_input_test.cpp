#include "model/formats/json_input.hpp"

#include <chrono>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace troupe::detail {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(json_input, is_what_the_library_makes_of_it) {
  for (const char* text :
       {R"({"b":[1,-2,3.5,{"x":{}},[[]]],"a":{"c":null,"d":true,"e":"\u00e9\n"},"":18446744073709551615})", "[]", "{}",
        R"("alone")", "12", "null", R"([{},{"a":[]},[{}]])"}) {
    EXPECT_EQ(parse_json(text, "it"), nlohmann::json::parse(text)) << text;
    EXPECT_EQ(parse_json_as<ordered_json>(text, "it").dump(), ordered_json::parse(text).dump()) << text;
  }
}

TEST(json_input, names_what_is_wrong) {
  const auto refused = [](const char* text, json_limits limits, const char* why) {
    EXPECT_THAT([&] { parse_json(text, "it", limits); }, ThrowsMessage<input_error>(HasSubstr(why))) << text;
    EXPECT_THAT([&] { parse_json_as<ordered_json>(text, "it", limits); }, ThrowsMessage<input_error>(HasSubstr(why)));
  };
  for (const char* broken : {"", "{", "[1,]", "{\"a\"}", "[1] 2", "1e999", "\"\xff\"", "nul"})
    refused(broken, {}, "it: is no valid JSON: ");
  refused(R"({"a":1,"b":2,"a":3})", {}, R"(it: has the key "a" twice)");
  refused(R"([{"a":{}},{"a":{"b":1,"b":1}}])", {}, R"(it: has the key "b" twice)");
  refused("[[[]]]", {.depth = 1}, "it: is nested deeper than 1 levels");
  refused("[[1]]", {.depth = 1}, "it: is nested deeper than 1 levels");
  refused("[1,2,3]", {.depth = 1, .values = 4}, "it: has more than 4 values");
  EXPECT_EQ(parse_json("[[]]", "it", {.depth = 1}).size(), 1u);
  EXPECT_EQ(parse_json("[1,2]", "it", {.depth = 1, .values = 4}).size(), 2u);
}

TEST(json_input, may_have_what_a_key_says_last) {
  const char* text = R"({"a":{"c":1,"c":[2]},"b":2,"a":{"d":3,"d":null},"b":4})";
  EXPECT_EQ(parse_json(text, "it", {.repeated_keys = true}).dump(), R"({"a":{"d":null},"b":4})");
  EXPECT_EQ(parse_json_as<ordered_json>(text, "it", {.repeated_keys = true}).dump(), R"({"a":{"d":null},"b":4})");
}

/// Python's json.dump() writes such words, and the fields that have them may be none that anybody reads.
TEST(json_input, names_the_words_that_are_no_numbers) {
  const auto reason = [](const std::string& text) {
    try {
      parse_json(text, "it");
    } catch (const input_error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  const auto advises = testing::EndsWith(": Infinity and NaN are no JSON: replace or remove them");
  for (const char* text : {"NaN", "{\"limit\": [0.0,\n Infinity]}", R"({"limit":-Infinity})", "\xef\xbb\xbf[NaN]"})
    EXPECT_THAT(reason(text), testing::AllOf(testing::StartsWith("it: is no valid JSON: "), advises)) << text;
  for (const char* other : {"[1,]", "", "Inf", R"(["NaN" Nothing])", R"(["Infinity)"})
    EXPECT_THAT(reason(other), testing::Not(advises)) << other;
}

TEST(json_input, knows_integers_however_they_are_written) {
  const auto integer = [](const char* text) { return to_integer(parse_json(text, "it")); };
  EXPECT_EQ(integer("5"), 5);
  EXPECT_EQ(integer("5.0"), 5);
  EXPECT_EQ(integer("-2e3"), -2000);
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  for (const char* none : {"5.5", "9223372036854775808", "1e16", "-1e300", "\"5\"", "true", "null"})
    EXPECT_EQ(integer(none), std::nullopt) << none;
}

/// A client's text of some megabytes must not hold up all others: each of these took minutes once.
TEST(json_input, takes_no_longer_for_each_value_where_there_are_many) {
  const auto begin = std::chrono::steady_clock::now();
  std::string objects = "[{}", keys = "{\"first\":0";
  for (int i = 0; i < 400'000; ++i) {
    objects += ",{}";
    keys += ",\"" + std::to_string(i) + "\":0";
  }
  EXPECT_EQ(parse_json(objects + "]", "it").size(), 400'001u);
  EXPECT_EQ(parse_json_as<ordered_json>(objects + "]", "it").size(), 400'001u);
  EXPECT_EQ(parse_json_as<ordered_json>(keys + "}", "it").size(), 400'001u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace troupe::detail
