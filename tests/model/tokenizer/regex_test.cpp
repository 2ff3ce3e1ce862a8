#include "model/tokenizer/regex.hpp"
#include "model/tokenizer/patterns.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe::detail {
namespace {

using test::refusal;

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const regex compiled = regex_of(pattern, "test");
  regex::cursor cursor(compiled, text);
  regex::match found{};
  std::vector<std::string> all;
  while (cursor.next(found)) all.emplace_back(text.substr(found.begin, found.end - found.begin));
  return all;
}

using texts = std::vector<std::string>;

TEST(regex, cuts_text_the_way_published_models_do) {
  EXPECT_EQ(matches(gpt2_pattern, "It's  12 of\n\n us"), (texts{"It", "'s", " ", " 12", " of", "\n\n", " us"}));
  EXPECT_EQ(matches(llama3_pattern, "IT'S 12345!\n\n  us"), (texts{"IT", "'S", " ", "123", "45", "!\n\n", " ", " us"}));
  EXPECT_EQ(matches(qwen2_pattern, "a12 "), (texts{"a", "1", "2", " "}));
  EXPECT_EQ(matches(qwen2_pattern, "xq\u0323a"), (texts{"xq", "\u0323a"}));
  EXPECT_EQ(matches(qwen35_pattern, "xq\u0323a 12 I'm\n"), (texts{"xq\u0323a", " ", "1", "2", " I", "'m", "\n"}));
}

TEST(regex, reads_white_space_and_word_characters_as_oniguruma_does) {
  EXPECT_EQ(matches(R"(\s)", "\u180e\u00a0"), texts{"\u00a0"});
  EXPECT_EQ(matches(R"([^\s]+)", "a\u180eb"), texts{"a\u180eb"});
  EXPECT_EQ(matches(R"(\S+)", "a\u180eb c"), (texts{"a\u180eb", "c"}));
  EXPECT_EQ(matches(R"(\w+)", "e\u0301\u203fx-y"), (texts{"e\u0301\u203fx", "y"}));
  EXPECT_EQ(matches(R"(\w)", "\u00b2\u00bd\u2075"), (texts{"\u00b2", "\u00bd"}));
  EXPECT_EQ(matches(R"(\W)", "\u00b2\u00bd\u2075"), texts{"\u2075"});
  EXPECT_EQ(matches(R"([\w])", "\u00b2\u00bd\u2075"), texts{});
}

TEST(regex, reads_the_name_of_a_script_as_its_own_characters) {
  const std::string text = "\u6c34\u3002\u30a2";  // the full stop belongs to several scripts
  for (const auto* pattern : {R"(\p{Han})", R"([\p{Han}])", R"([^\P{Han}])"})
    EXPECT_EQ(matches(pattern, text), texts{"\u6c34"}) << pattern;
  for (const auto* pattern : {R"(\P{Han}+)", R"(\p{^Han}+)", R"([^\p{Han}]+)"})
    EXPECT_EQ(matches(pattern, text), texts{"\u3002\u30a2"}) << pattern;
}

/// Of Unicode 15 and 16.
TEST(regex, knows_later_characters_than_pcre2_may) {
  const std::string symbol = "\U0001fae8", letter = "\U00031350", capital = "\ua7da", mark = "\u0897";
  const std::string text = symbol + letter + "a" + mark + "1" + capital + "\U00011f50";
  EXPECT_EQ(matches(R"(\p{S})", text), texts{symbol});
  EXPECT_EQ(matches(R"([\p{S}-]|[^\P{Lu}\p{Lu}])", text), texts{symbol});
  EXPECT_EQ(matches(R"(\p{L}+)", text), (texts{letter + "a", capital}));
  EXPECT_EQ(matches(R"(\p{L&})", text), (texts{"a", capital}));
  EXPECT_EQ(matches(R"(\P{L}+)", text), (texts{symbol, mark + "1", "\U00011f50"}));
  EXPECT_EQ(matches(R"(\p{^L}+)", text), (texts{symbol, mark + "1", "\U00011f50"}));
  EXPECT_EQ(matches(R"(\P{^N})", text), (texts{"1", "\U00011f50"}));
  EXPECT_EQ(matches(R"([^\s\p{L}\p{N}]+)", text), (texts{symbol, mark}));
  EXPECT_EQ(matches(R"(\w+)", text), texts{text.substr(symbol.size())});
  EXPECT_EQ(matches(R"([^\w]|\W)", text), texts{symbol});
  EXPECT_EQ(matches(deepseek_v3_patterns[2], "Hi \U0001fa77!\n"), (texts{"Hi", " \U0001fa77!\n"}));
}

TEST(regex, reads_escapes) {
  EXPECT_EQ(matches(R"([\x41\u00e9]|\x{1f600})", "A\u00e9\U0001f600B"), (texts{"A", "\u00e9", "\U0001f600"}));
  EXPECT_EQ(matches(R"(\p{Lu}|\P{L})", "aB1"), (texts{"B", "1"}));
}

TEST(regex, counts_repetitions) {
  EXPECT_EQ(matches(R"(\p{L}{2,3}?)", "abcd"), (texts{"ab", "cd"}));
  EXPECT_EQ(matches(R"(\p{Lu}?b{2})", "Abbbb"), (texts{"Abb", "bb"}));
}

TEST(regex, has_empty_matches_where_no_other_match_ended) {
  EXPECT_EQ(matches("a*", "baab\u00e9a"), (texts{"", "aa", "", "a"}));
  EXPECT_EQ(matches("a*", "ab"), (texts{"a", ""}));
  EXPECT_EQ(matches(R"((?=(\d{3})+(?!\d)))", "1234567"), (texts{"", ""}));
  EXPECT_EQ(matches("a*", ""), texts{});
}

TEST(regex, matches_an_escaped_text_alone) {
  const std::string text = "a.b*c[d]\\ \u00e9(";
  const regex compiled(escape_pattern(text), "test");
  regex::cursor cursor(compiled, text);
  regex::match found{};
  ASSERT_TRUE(cursor.next(found));
  EXPECT_EQ(found.end, text.size());
}

TEST(regex, refuses_what_would_mean_something_else) {
  for (const auto* pattern : {"\\h", "[a&&b]", "[a[b]]", "(*UTF)", "(?<name>a)", "\\1", "a{1,3}+", "a{,3}", "a{3}?",
                              "a(?i)b|c", "\\K", "\\", "\\p", "(a", "\\p{NoSuchProperty}"})
    EXPECT_NE(refusal([&] { matches(pattern, "a"); }).find("test: "), std::string::npos) << pattern;
}

TEST(regex, gives_up_on_a_pattern_made_to_hang) {
  const auto text = refusal([] { matches("(?:(?:a+)+)+[bc]", std::string(60, 'a')); });
  EXPECT_NE(text.find("cannot be matched"), std::string::npos) << text;
}

}  // namespace
}  // namespace troupe::detail
