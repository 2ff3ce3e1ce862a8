#include <gtest/gtest.h>

#include "actors/http/chats/reply_reader.hpp"
#include "model/text/channels.hpp"
#include "tests/actors/http/chats/offered.hpp"

namespace troupe::test {
namespace {

constexpr std::string_view harmony_source = "<|channel|>analysis<|channel|>final{% if tools %}";

/// Thoughts in (), texts in '', calls in [], of a text that comes in pieces of `size`.
std::string read_channels(std::string_view text, std::size_t size,
                          std::string_view prompt_end = "<|end|><|start|>assistant", bool is_cut = false) {
  reply_reader reader{thought_reader(harmony_source),
                      tool_call_reader(tool_style_of(harmony_source), offered({"go", "look"}))};
  reader.follow(prompt_end);
  std::string all;
  const auto add = [&](const std::vector<reply_piece>& pieces) {
    for (const reply_piece& each : pieces) {
      const bool is_thought = each.is == reply_piece::kind::thought;
      const std::string_view marks = is_thought ? "()" : each.is == reply_piece::kind::text ? "''" : "[]";
      if (!all.empty() && all.back() == marks[1] && marks[1] != ']')
        all.pop_back();
      else
        all += marks[0];
      all += each.is == reply_piece::kind::call ? each.call.name + " " + each.call.arguments : each.text;
      all += marks[1];
    }
  };
  for (std::size_t at = 0; at < text.size(); at += size) add(reader.push(text.substr(at, size)));
  add(reader.finish(is_cut));
  return all;
}

/// However it is cut: whole answers have their thoughts first.
void expect_channels(std::string_view text, std::string_view expected,
                     std::string_view prompt_end = "<|end|><|start|>assistant", bool is_cut = false) {
  for (std::size_t size = 1; size < 50; ++size)
    EXPECT_EQ(read_channels(text, size, prompt_end, is_cut), expected) << size;
}

TEST(channels, are_known_by_the_template) {
  EXPECT_TRUE(has_channels(harmony_source));
  EXPECT_EQ(tool_style_of(harmony_source), tool_style::channels);
  EXPECT_FALSE(has_channels("<think></think>"));
}

TEST(channels, tell_thoughts_from_answers) {
  expect_channels(
      "<|channel|>analysis<|message|>Hm, a < b <|.<|end|><|start|>assistant<|channel|>final<|message|>Yes, <|a",
      "(Hm, a < b <|.)'Yes, <|a'");
  expect_channels("<|channel|>final<|message|>Yes<|return|>", "'Yes'");
  expect_channels("<|channel|>analysis<|message|>Hm", "(Hm)");
}

TEST(channels, leave_a_whole_answer_all_of_its_text) {
  EXPECT_EQ(without_thoughts("<|channel|>final<|message|>a <"), "a <") << "which might have begun a mark";
  EXPECT_EQ(without_thoughts("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>final<|message|>a"),
            "a");
}

TEST(channels, of_one_kind_are_told_apart_by_lines) {
  expect_channels(
      "<|channel|>analysis<|message|>A<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
      "<|start|>assistant<|channel|>analysis<|message|>B<|end|><|start|>assistant<|channel|>final<|message|>C",
      "(A)'I look.'(\nB)'\nC'");
}

TEST(channels, have_calls_that_are_addressed_to_functions) {
  const std::string call = R"(<|message|>{"x": [1, "<"]})";
  expect_channels(
      "<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.go "
      "<|constrain|>json" +
          call + "<|call|>",
      R"((Hm)[go {"x":[1,"<"]}])");
  expect_channels(" to=functions.look<|channel|>commentary json" + call, R"([look {"x":[1,"<"]}])");
  expect_channels("<|start|>assistant to=functions.go<|channel|>commentary<|message|>", "[go {}]");
}

TEST(channels, keep_calls_that_were_cut_and_drop_headers_that_were) {
  expect_channels(R"(<|channel|>commentary to=functions.go<|message|>{"x": [1)", R"([go {"x": [1])",
                  "<|start|>assistant", true);
  expect_channels("<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|chan", "(Hm)");
}

TEST(channels, show_calls_of_what_is_not_offered_as_the_model_wrote_them) {
  expect_channels("<|channel|>commentary to=functions.fly<|message|>{}<|call|>",
                  "'<|channel|>commentary to=functions.fly <|constrain|>json<|message|>{}<|call|>'");
  expect_channels("<|channel|>commentary to=python<|message|>1+1<|call|>", "'1+1'");
}

TEST(channels, are_not_needed_for_an_answer) {
  expect_channels("Yes <|message|> no", "'Yes <|message|> no'");
  expect_channels("to", "'to'");
  expect_channels("<|x", "'<|x'");
}

TEST(channels, go_on_where_the_prompt_is_in_a_message) {
  expect_channels("es<|return|>", "'es'", "<|start|>assistant<|channel|>final<|message|>Y");
  expect_channels("es", "'es'", "a long answer goes on with Y");
  expect_channels("m<|end|><|start|>assistant<|channel|>final<|message|>Yes", "(m)'Yes'",
                  "<|start|>assistant<|channel|>analysis<|message|>H");
}

}  // namespace
}  // namespace troupe::test
