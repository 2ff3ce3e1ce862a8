#include "model/engine/sampling/certain_text.hpp"

#include <gtest/gtest.h>

#include "tests/model/tokenizer/listed_tokens.hpp"

namespace troupe {
namespace {

/// Every token is one byte.
class tokens_of_one_byte final : public test::listed_tokens {
 public:
  tokens_of_one_byte() { add_bytes(); }
};

const tokens_of_one_byte bytes_for_texts;

certain_text until(std::vector<std::string> stops, bool keeps_stop = false) {
  return {stream_decoder(bytes_for_texts), stop_matcher(std::move(stops), keeps_stop)};
}

token_id token_for(char byte) {
  return static_cast<unsigned char>(byte);
}

std::string push_all(certain_text& text, std::string_view bytes, bool stops_count = true) {
  std::string certain;
  for (const char byte : bytes) certain += text.push(token_for(byte), stops_count);
  return certain;
}

TEST(certain_text, is_of_whole_characters_that_begin_no_stop_string) {
  certain_text text = until({"u\u00e9!"});
  EXPECT_EQ(push_all(text, "a\xC3"), "a");
  EXPECT_EQ(text.push(token_for('\xA9'), true), "\u00e9");
  EXPECT_EQ(push_all(text, "u\u00e9"), "") << "it may be the stop string";
  EXPECT_EQ(text.push(token_for('?'), true), "u\u00e9?");
  EXPECT_EQ(push_all(text, "u\u00e9!"), "");
  ASSERT_TRUE(text.stopped());
  EXPECT_EQ(*text.matched(), "u\u00e9!");
  EXPECT_EQ(push_all(text, "more"), "");
  EXPECT_EQ(text.finish(), "");
}

TEST(certain_text, ends_with_what_was_held_back) {
  certain_text text = until({"END"});
  EXPECT_EQ(push_all(text, "an EN"), "an ");
  EXPECT_EQ(text.push(token_for('\xC3'), true), "");
  EXPECT_EQ(text.finish(), "EN\uFFFD");
  EXPECT_FALSE(text.stopped());
}

TEST(certain_text, may_have_the_token_that_ended_the_answer) {
  certain_text text = until({"END"});
  EXPECT_EQ(push_all(text, "E"), "");
  EXPECT_EQ(text.finish(token_for('.')), "E.");
}

/// As where an answer is to be longer before anything may stop it.
TEST(certain_text, goes_on_behind_a_stop_string_that_does_not_count) {
  certain_text text = until({"END"});
  EXPECT_EQ(push_all(text, "END", false), "END");
  EXPECT_FALSE(text.stopped());
  EXPECT_EQ(push_all(text, "EN", false), "");
  EXPECT_EQ(text.finish(token_for('D')), "END") << "nor does it count at the end then";
  EXPECT_FALSE(text.stopped());
  certain_text stopped = until({"END"});
  EXPECT_EQ(push_all(stopped, "EN"), "");
  EXPECT_EQ(stopped.finish(token_for('D')), "");
  EXPECT_TRUE(stopped.stopped());
}

TEST(certain_text, ends_with_its_stop_string_where_told) {
  certain_text text = until({"END"}, true);
  EXPECT_EQ(push_all(text, "an END and"), "an END");
  EXPECT_TRUE(text.stopped());
}

TEST(certain_text, is_each_answers_own) {
  const certain_text nothing_yet = until({"END"});
  certain_text one = nothing_yet, other = nothing_yet;
  EXPECT_EQ(push_all(one, "EN"), "");
  EXPECT_EQ(push_all(other, "D"), "D");
  EXPECT_EQ(one.finish(), "EN");
}

}  // namespace
}  // namespace troupe
