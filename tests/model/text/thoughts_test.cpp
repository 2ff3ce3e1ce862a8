#include "model/text/thoughts.hpp"

#include <gtest/gtest.h>

namespace troupe::test {
namespace {

constexpr std::string_view gemma_4 = "{{ messages }}<|channel>thought<channel|>";
constexpr std::string_view thinking = "{{ messages }}<think></think>";

/// Thought and answer of a text that comes in pieces of `size`.
std::pair<std::string, std::string> read(std::string_view text, std::size_t size, std::string_view prompt_end = "",
                                         std::string_view chat_template = thinking, std::string_view message = "") {
  thought_reader reader(chat_template);
  if (!message.empty()) reader.go_on_with(message);
  reader.follow(prompt_end);
  std::pair<std::string, std::string> all;
  const auto add = [&](const thought_reader::said& each) {
    all.first += each.thought;
    all.second += each.answer;
  };
  for (std::size_t at = 0; at < text.size(); at += size) add(reader.push(text.substr(at, size)));
  add(reader.finish());
  return all;
}

using both = std::pair<std::string, std::string>;

TEST(thoughts, are_told_from_answers_however_the_text_is_cut) {
  for (std::size_t size = 1; size < 40; ++size) {
    EXPECT_EQ(read("<think>\nHm, a < b.\n\nSo </b>?\n</think>\n\nYes <think>\n ", size),
              both("Hm, a < b.\n\nSo </b>?", "Yes <think>\n "));
    EXPECT_EQ(read("Hm.\n</think>\nYes", size, "\nassistant: <think>\n"), both("Hm.", "Yes"));
    EXPECT_EQ(read("<think>\n\n</think>\n\nYes", size), both("", "Yes"));
    EXPECT_EQ(read("[THINK]Hm <think>[/THINK]Yes", size, "", "[THINK][/THINK]"), both("Hm <think>", "Yes"));
    EXPECT_EQ(read("<|channel>thought\nHm\n<channel|>Yes", size, "", gemma_4), both("Hm", "Yes"));
    EXPECT_EQ(read("<|channel>thought\n<channel|>Yes", size, "", gemma_4), both("", "Yes"));
    EXPECT_EQ(read("Hm<channel|>Yes", size, "<|turn>model\n<|channel>thought\n", gemma_4), both("Hm", "Yes"));
    EXPECT_EQ(read("Yes", size, "<|channel>thought\n<channel|>", gemma_4), both("", "Yes"));
  }
}

TEST(thoughts, may_have_an_answer_between_marks_behind_them) {
  constexpr std::string_view cohere = "<|START_THINKING|><|END_THINKING|>";
  const auto read_cohere = [&](std::string_view text, std::size_t size, std::string_view prompt_end = "") {
    return read(text, size, prompt_end, cohere);
  };
  const std::string thought = "<|START_THINKING|>Hm <|END_THINKING|>";
  for (std::size_t size = 1; size < 40; ++size) {
    EXPECT_EQ(read_cohere(thought + "\n<|START_RESPONSE|>\nYes. <|START\n<|END_RESPONSE|>\n", size),
              both("Hm", "Yes. <|START"));
    EXPECT_EQ(read_cohere("<|START_RESPONSE|>Yes<|END_RESPONSE|>\n<|START_ACTION|>[]", size),
              both("", "Yes<|START_ACTION|>[]"));
    EXPECT_EQ(read_cohere(thought + "<|START_ACTION|>[]", size), both("Hm", "<|START_ACTION|>[]"));
    EXPECT_EQ(read_cohere(" Yes <|START_RESPONSE|>", size), both("", " Yes <|START_RESPONSE|>"));
    EXPECT_EQ(read_cohere("<|START_RESPONSE|>Yes \n<|END_", size), both("", "Yes \n<|END_")) << "it was cut";
    EXPECT_EQ(read_cohere(thought + "<|START_RES", size), both("Hm", "<|START_RES"));
    EXPECT_EQ(read_cohere("Hm<|END_THINKING|>Yes", size, "<|START_THINKING|>"), both("Hm", "Yes"));
    EXPECT_EQ(read_cohere("Yes<|END_RESPONSE|>", size, "<|START_RESPONSE|>"), both("", "Yes"));
    EXPECT_EQ(read(" or no<|END_RESPONSE|>", size, "Yes", cohere, "Yes"), both("", " or no")) << "it goes on";
  }
}

/// ERNIE 4.5's and Granite 3.3's.
TEST(thoughts, may_have_an_answer_in_tags_behind_them) {
  constexpr std::string_view ernie = "<think></think><response></response>";
  for (std::size_t size = 1; size < 40; ++size) {
    EXPECT_EQ(read("Hm\n</think>\n\n\n<response>\nYes\n</response>\n\n<tool_call>", size, "<think>\n", ernie),
              both("Hm", "Yes<tool_call>"));
    EXPECT_EQ(read("Hm\n</think>\nYes <response>", size, "<think>", ernie), both("Hm", "Yes <response>"));
    EXPECT_EQ(read("<response>Yes</response>", size), both("", "<response>Yes</response>"))
        << "the template does not know them";
  }
}

TEST(thoughts, are_what_tags_of_answers_are_left_out_behind) {
  constexpr std::string_view granite = "<think></think><response></response>";
  const std::string xml = "<response><ok/></response>";
  for (std::size_t size = 1; size < 40; ++size) {
    EXPECT_EQ(read(xml, size, "", granite), both("", xml));
    EXPECT_EQ(read("<think>Hm</think>" + xml, size, "", granite), both("Hm", "<ok/>"));
  }
  EXPECT_EQ(thought_reader(granite).push("<resp").answer, "<resp") << "it is not held back";
}

TEST(thoughts, that_were_never_begun_are_no_thoughts) {
  for (std::size_t size = 1; size < 20; ++size) {
    EXPECT_EQ(read(" Yes <think>a</think>", size), both("", " Yes <think>a</think>"));
    EXPECT_EQ(read("<thin", size), both("", "<thin"));
    EXPECT_EQ(read("Yes", size, "<think>\n\n</think>\n\n"), both("", "Yes"));
    EXPECT_EQ(read("<think>a</think>b", size, "", "{{ messages }}"), both("", "<think>a</think>b"))
        << "the template does not know them";
  }
}

TEST(thoughts, go_on_where_the_message_before_has_begun_them) {
  const auto gone_on = [](std::string_view message, std::string_view text, std::string_view chat_template = thinking) {
    return read(text, 3, message.substr(message.size() - std::min<std::size_t>(message.size(), 4)), chat_template,
                message);
  };
  EXPECT_EQ(gone_on("<think>\nI wonder", " a </think>\nYes"), both(" a", "Yes"));
  EXPECT_EQ(gone_on("<think>\n", "\nI</think>Yes"), both("I", "Yes"));
  EXPECT_EQ(gone_on("\n<think>I wonder", " a </think>\nYes"), both(" a", "Yes"));
  EXPECT_EQ(gone_on("<think>I</think>So", " yes </think>"), both("", " yes </think>"));
  EXPECT_EQ(gone_on("So", " yes </think>"), both("", " yes </think>"));
  EXPECT_EQ(gone_on("<think>I wonder", "a</think>", "{{ messages }}"), both("", "a</think>"));
  constexpr std::string_view harmony = "<|channel|>analysis<|channel|>final";
  EXPECT_EQ(gone_on("<|channel|>analysis<|message|>I wonder", " a<|end|>", harmony), both(" a", ""));
  EXPECT_EQ(gone_on("I wonder", " a<|end|>", harmony), both("", " a"));
}

TEST(thoughts, are_none_where_the_message_before_only_speaks_of_their_tags) {
  const auto gone_on = [](std::string_view message, std::string_view chat_template = thinking) {
    return read("a</think>Yes", 3, message, chat_template, message);
  };
  const both all("", "a</think>Yes");
  EXPECT_EQ(gone_on("Thoughts begin with <think>, then"), all);
  EXPECT_EQ(gone_on("Thoughts begin with <think>"), all) << "as if the template had begun one";
  EXPECT_EQ(gone_on("<think>I</think>They begin with <think>, then"), all);
  EXPECT_EQ(gone_on("Thoughts begin with [THINK], then", "[THINK][/THINK]"), all);
  EXPECT_EQ(gone_on("Thoughts begin with <|channel>thought, then", gemma_4), all);
}

TEST(thoughts, that_were_cut_are_as_long_as_they_got) {
  for (std::size_t size = 1; size < 20; ++size) {
    EXPECT_EQ(read("<think>Hm, \n", size), both("Hm,", ""));
    EXPECT_EQ(read("<think>Hm.</thi", size), both("Hm.</thi", ""));
    EXPECT_EQ(read("<think>Hm.</think>\n", size), both("Hm.", ""));
  }
}

TEST(thoughts, may_have_special_tokens_around_them) {
  EXPECT_FALSE(shows_special(thinking));
  EXPECT_FALSE(shows_special(""));
  EXPECT_TRUE(shows_special("[THINK][/THINK]"));
  EXPECT_TRUE(shows_special(gemma_4));
  EXPECT_TRUE(shows_special("<|channel|>analysis<|channel|>final"));
  EXPECT_EQ(special_tags_of(thinking).begin, "");
  EXPECT_EQ(special_tags_of("[THINK][/THINK]").begin, "[THINK]");
  EXPECT_EQ(special_tags_of(gemma_4).end, "<channel|>");
}

TEST(thoughts, are_left_out_of_a_whole_answer) {
  const thought_tags tags = special_tags_of("[THINK][/THINK]");
  EXPECT_EQ(without_thoughts("[THINK]Hm.[/THINK]\nYes [THINK", tags), "Yes [THINK");
  EXPECT_EQ(without_thoughts("[THINK]Hm", tags), "") << "it was cut";
  EXPECT_EQ(without_thoughts("[THIN", tags), "[THIN");
  EXPECT_EQ(without_thoughts("Yes[/THINK]", tags), "Yes[/THINK]");
  EXPECT_EQ(without_thoughts("<seed:think>Hm</seed:think>Yes", special_tags_of("<seed:think></seed:think>")), "Yes");
  const thought_tags cohere = special_tags_of("<|START_THINKING|><|END_THINKING|>");
  EXPECT_EQ(without_thoughts("<|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>Yes<|END_RESPONSE|>", cohere),
            "Yes");
}

}  // namespace
}  // namespace troupe::test
