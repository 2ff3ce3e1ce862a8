#include "base/utf8.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(utf8, reads_what_it_writes) {
  for (char32_t value = 0; value < 0x110000; value += value < 0x3000 ? 1 : 13) {
    if (value >= 0xD800 && value < 0xE000) continue;
    std::string text;
    append_utf8(text, value);
    const auto point = next_code_point(text, 0);
    ASSERT_TRUE(point.valid);
    ASSERT_EQ(point.value, value);
    ASSERT_EQ(point.length, text.size());
  }
}

TEST(utf8, takes_overlong_surrogate_and_too_large_forms_for_invalid) {
  for (const auto* text : {"\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8\x88", "\x80", "\xFF"})
    EXPECT_FALSE(next_code_point(text, 0).valid) << text;
}

TEST(utf8, tells_a_cut_off_character_from_a_broken_one) {
  EXPECT_TRUE(next_code_point("\xF0\x9F\x98", 0).cut_off);
  EXPECT_EQ(next_code_point("\xF0\x9F\x98", 0).length, 3u);
  EXPECT_FALSE(next_code_point("\xF0\x9F x", 0).cut_off);
  EXPECT_EQ(next_code_point("\xF0\x9F x", 0).length, 2u);
}

TEST(utf8, finds_where_the_last_character_starts) {
  EXPECT_EQ(last_code_point("a\u6c34"), 1u);
  EXPECT_EQ(last_code_point("a\xE6\xB0"), 2u) << "a byte that belongs to no character";
}

TEST(utf8, finds_the_character_that_an_end_cuts_off) {
  EXPECT_EQ(bytes_of_whole_characters(""), 0u);
  const std::string text = "a\u6c34\U0001F600";
  for (const auto& [bytes, whole] : {std::pair(1u, 1u), {2, 1}, {3, 1}, {4, 4}, {5, 4}, {6, 4}, {7, 4}, {8, 8}})
    EXPECT_EQ(bytes_of_whole_characters(text.substr(0, bytes)), whole) << bytes;
  EXPECT_EQ(bytes_of_whole_characters("a\x80"), 2u) << "a byte that belongs to no character";
}

TEST(utf8, goes_over_valid_and_invalid_stretches) {
  std::string seen;
  for_each_stretch(
      "\xFF\x80 a\u00e9\xC3", [&](std::string_view valid) { seen += "(" + std::string(valid) + ")"; },
      [&](std::string_view invalid) { seen += std::to_string(invalid.size()); });
  EXPECT_EQ(seen, "2( a\u00e9)1");
}

TEST(utf8, leaves_out_what_moves_a_terminals_cursor) {
  EXPECT_EQ(without_controls("\x1b[31m\u009b2J\u00a9\x7f\n\u6c34\x9b"), "?[31m?2J\u00a9??\u6c34?");
  EXPECT_EQ(without_controls("a\r\nb\u0085\xff", ' '), "a  b ?");
}

TEST(utf8, knows_white_space) {
  for (const char32_t c : {U' ', U'\n', U'\u00a0', U'\u3000', U'\u2028'}) EXPECT_TRUE(is_white_space(c));
  for (const char32_t c : {U'a', U'\u200b', U'\u180e', U'\x1c'}) EXPECT_FALSE(is_white_space(c));
}

}  // namespace
}  // namespace troupe
