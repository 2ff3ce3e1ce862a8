#include "model/engine/sampling/stop_matcher.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(stop_matcher, lets_everything_through_without_stop_strings) {
  stop_matcher matcher({""});
  EXPECT_EQ(matcher.push("any"), "any");
  EXPECT_EQ(matcher.finish(), "");
  EXPECT_FALSE(matcher.stopped());
}

TEST(stop_matcher, cuts_before_a_stop_string_inside_a_piece) {
  stop_matcher matcher({"END"});
  EXPECT_EQ(matcher.push("textENDmore"), "text");
  ASSERT_TRUE(matcher.stopped());
  EXPECT_EQ(*matcher.matched(), "END");
  EXPECT_EQ(matcher.push("more"), "");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(stop_matcher, keeps_the_stop_string_where_told) {
  stop_matcher matcher({"END", "ND"}, true);
  EXPECT_EQ(matcher.push("textE"), "text");
  EXPECT_EQ(matcher.push("NDmore"), "END");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.finish(), "");
}

TEST(stop_matcher, finds_a_stop_string_spread_over_pieces) {
  stop_matcher matcher({"\n\nUser:"});
  EXPECT_EQ(matcher.push("Hello\n"), "Hello");
  EXPECT_EQ(matcher.push("\nUs"), "");
  EXPECT_EQ(matcher.push("er: hi"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(stop_matcher, releases_what_turns_out_to_be_no_stop_string) {
  stop_matcher matcher({"abcd"});
  EXPECT_EQ(matcher.push("xab"), "x");
  EXPECT_EQ(matcher.push("c"), "");
  EXPECT_EQ(matcher.push("aby"), "abcaby");
  EXPECT_FALSE(matcher.stopped());
}

TEST(stop_matcher, keeps_the_beginning_that_overlaps_a_failed_match) {
  stop_matcher matcher({"aab"});
  EXPECT_EQ(matcher.push("aa"), "");
  EXPECT_EQ(matcher.push("a"), "a");
  EXPECT_EQ(matcher.push("b"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(stop_matcher, passes_over_stop_strings_that_end_where_they_do_not_count) {
  stop_matcher matcher({"aab", "aa"});
  EXPECT_EQ(matcher.push("xaab", false), "xaab");
  EXPECT_EQ(matcher.push("aabaa", false), "aab") << "the rest may begin one";
  EXPECT_EQ(matcher.push("c"), "aac");
  EXPECT_EQ(matcher.push("ya", false), "y");
  EXPECT_EQ(matcher.push("a"), "") << "one that only begins there counts";
  EXPECT_TRUE(matcher.stopped());
}

TEST(stop_matcher, releases_what_it_holds_when_the_stream_ends) {
  stop_matcher matcher({"abc"});
  EXPECT_EQ(matcher.push("ab"), "");
  EXPECT_EQ(matcher.finish(), "ab");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(stop_matcher, takes_the_string_that_ends_first_and_then_the_longest) {
  stop_matcher inner({"abcd", "bc"});
  EXPECT_EQ(inner.push("xabcd"), "xa");
  EXPECT_EQ(*inner.matched(), "bc");
  stop_matcher longest({"c", "abc", "bc"});
  EXPECT_EQ(longest.push("xabcd"), "x");
  EXPECT_EQ(*longest.matched(), "abc");
}

TEST(stop_matcher, holds_whole_characters) {
  stop_matcher matcher({"\xc3\xa9t"});  // é, t
  EXPECT_EQ(matcher.push("caf\xc3\xa9"), "caf");
  EXPECT_EQ(matcher.push("\xc3\xa8"), "\xc3\xa9\xc3\xa8");  // è shares é's first byte
  EXPECT_EQ(matcher.push("\xc3\xa9t"), "");
  EXPECT_TRUE(matcher.stopped());
}

TEST(stop_matcher, survives_being_copied_and_moved) {
  stop_matcher first({"ab"});
  first.push("xa");
  stop_matcher copy = first;
  stop_matcher moved = std::move(first);
  EXPECT_EQ(copy.push("b"), "");
  EXPECT_EQ(*copy.matched(), "ab");
  EXPECT_EQ(moved.push("c"), "ac");
}

/// Where the text ends by the rule: before the stop string that ends first, the longest of those.
std::size_t end_of(const std::string& text, const std::vector<std::string>& stops) {
  std::size_t best_end = std::string::npos, best_start = text.size();
  for (const auto& stop : stops) {
    const std::size_t at = text.find(stop);
    if (at == std::string::npos) continue;
    const std::size_t end = at + stop.size();
    if (end < best_end || (end == best_end && at < best_start)) best_end = end, best_start = at;
  }
  return best_start;
}

TEST(stop_matcher, gives_the_same_text_however_the_stream_is_cut) {
  std::mt19937 random(11);
  const auto word = [&](std::size_t least, std::size_t most) {
    std::string made(least + random() % (most - least + 1), ' ');
    for (char& c : made) c = static_cast<char>('a' + random() % 2);
    return made;
  };
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::string> stops(1 + random() % 3);
    for (auto& stop : stops) stop = word(3, 9);
    const std::string text = word(0, 60);
    stop_matcher matcher(stops);
    std::string given;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = std::min<std::size_t>(1 + random() % 5, text.size() - at);
      given += matcher.push(std::string_view(text).substr(at, n));
      at += n;
    }
    given += matcher.finish();
    ASSERT_EQ(given, text.substr(0, end_of(text, stops)));
    ASSERT_EQ(matcher.stopped(), given.size() < text.size());
  }
}

TEST(stop_matcher, takes_linear_time_where_every_byte_almost_matches) {
  stop_matcher matcher({std::string(1000, 'a') + "b"});
  std::string given;
  for (int i = 0; i < 1000; ++i) given += matcher.push(std::string(1000, 'a'));
  given += matcher.finish();
  EXPECT_EQ(given.size(), 1'000'000u);
}

}  // namespace
}  // namespace troupe
