#include "model/tokenizer/added_tokens.hpp"
#include "tests/model/tokenizer/support.hpp"

namespace troupe::detail {
namespace {

added_token make(token_id id, std::string content) {
  added_token token;
  token.id = id;
  token.content = std::move(content);
  return token;
}

std::string split(const added_token_splitter& splitter, std::string_view text, bool parse_special = true) {
  std::string out;
  splitter.split(
      text, parse_special, [&](std::string_view part) { out += "(" + std::string(part) + ")"; },
      [&](token_id id) { out += "#" + std::to_string(id); });
  return out;
}

added_token_splitter of(const std::vector<added_token>& tokens) {
  added_token_splitter splitter;
  for (const auto& token : tokens) splitter.add(token, token.content);
  return splitter;
}

TEST(added_tokens, are_found_leftmost_and_longest) {
  const auto splitter = of({make(1, "<a>"), make(2, "<a>b"), make(3, "ab")});
  EXPECT_EQ(split(splitter, "x<a>by<a>ab<a"), "(x)#2(y)#1#3(<a)");
  EXPECT_EQ(split(splitter, ""), "");
}

TEST(added_tokens, take_white_space_along_where_they_say_so) {
  auto left = make(1, "<l>");
  left.lstrip = true;
  auto right = make(2, "<r>");
  right.rstrip = true;
  const auto splitter = of({left, right});
  EXPECT_EQ(split(splitter, "a \u00a0<l> b"), "(a)#1( b)");
  EXPECT_EQ(split(splitter, "a <r> \n b"), "(a )#2(b)");
  EXPECT_EQ(split(splitter, "<r> <l>"), "#2#1");
}

TEST(added_tokens, count_inside_white_space_that_another_takes_along) {
  auto right = make(1, "<r>");
  right.rstrip = true;
  EXPECT_EQ(split(of({right, make(2, "  ")}), "<r>  \n  \n."), "#1#2(\n)#2(\n.)");
  EXPECT_EQ(split(of({right, make(2, "  ")}), "<r>   "), "#1#2( )");
}

TEST(added_tokens, of_white_space_take_no_quadratic_time) {
  auto space = make(1, " ");
  space.lstrip = space.rstrip = true;
  std::size_t count = 0;
  const std::string text(1 << 20, ' ');
  of({space}).split(
      text, true, [](std::string_view) {}, [&](token_id) { ++count; });
  EXPECT_EQ(count, text.size());
}

TEST(added_tokens, stand_alone_where_they_say_so) {
  auto word = make(1, "word");
  word.single_word = true;
  const auto splitter = of({word});
  EXPECT_EQ(split(splitter, "word words sword \u00e9word word."), "#1( words sword \u00e9word )#1(.)");
}

TEST(added_tokens, are_text_when_special_ones_are_not_read) {
  auto special = make(1, "<s>");
  special.special = true;
  const auto splitter = of({special, make(2, "<t>")});
  EXPECT_EQ(split(splitter, "a<s>b<t>", false), "(a<s>b)#2");
  EXPECT_EQ(split(splitter, "a<s>b<t>", true), "(a)#1(b)#2");
}

TEST(added_tokens, that_are_written_alike_are_the_first_of_them) {
  EXPECT_EQ(split(of({make(1, "<a>"), make(2, "<a>")}), "<a>"), "#1");
}

TEST(added_tokens, are_found_among_broken_bytes) {
  EXPECT_EQ(split(of({make(1, "<a>")}), "\xFF<a>\x80"), "(\xFF)#1(\x80)");
}

}  // namespace
}  // namespace troupe::detail
