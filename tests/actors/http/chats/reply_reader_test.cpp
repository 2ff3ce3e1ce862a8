#include "actors/http/chats/reply_reader.hpp"

#include <gtest/gtest.h>

#include "tests/actors/http/chats/offered.hpp"

namespace troupe::test {
namespace {

constexpr const char* tagged_call = R"(<tool_call>{"name":"go","arguments":{}}</tool_call>)";

reply_reader reader() {
  return reply_reader(thought_reader("</think>"), tool_call_reader(tool_style::tagged, offered({"go"})));
}

/// Like "(thought)text[call]", each piece with what stands around it.
std::string shown(const std::vector<reply_piece>& pieces) {
  std::string all;
  for (const reply_piece& each : pieces) {
    if (each.is == reply_piece::kind::thought) all += "(" + each.text + ")";
    if (each.is == reply_piece::kind::text) all += "'" + each.text + "'";
    if (each.is == reply_piece::kind::call) all += "[" + each.call.name + "]";
  }
  return all;
}

std::string shown_whole(const std::string& text, bool is_cut = false) {
  return shown(reader().read_whole(text, is_cut));
}

TEST(reply_reader, keeps_the_order_in_which_things_were_written) {
  EXPECT_EQ(shown_whole(std::string("<think>Hm</think>\n\nLet me look.\n") + tagged_call + "\n" + tagged_call + "Done"),
            "(Hm)'Let me look.\n'[go][go]'Done'");
}

/// Cohere's.
TEST(reply_reader, reads_actions_behind_a_thought_and_answers_between_marks) {
  const auto read = [](const std::string& text) {
    reply_reader of_cohere(thought_reader("<|END_THINKING|><|START_ACTION|>"),
                           tool_call_reader(tool_style::actions, offered({"go"})));
    return shown(of_cohere.read_whole(text, false));
  };
  EXPECT_EQ(read("<|START_THINKING|>Hm<|END_THINKING|><|START_ACTION|>[\n{\"tool_call_id\": \"0\", \"tool_name\": "
                 "\"go\", \"parameters\": {}}\n]<|END_ACTION|>"),
            "(Hm)[go]");
  EXPECT_EQ(read("<|START_THINKING|>Hm<|END_THINKING|><|START_RESPONSE|>Yes<|END_RESPONSE|>"), "(Hm)'Yes'");
  EXPECT_EQ(read("<|START_RESPONSE|>Yes"), "'Yes'");
}

TEST(reply_reader, leaves_out_white_space_that_is_no_text) {
  EXPECT_EQ(shown_whole(std::string(" \n") + tagged_call + "\n"), "[go]");
  EXPECT_EQ(shown_whole("<think>Hm</think>\n"), "(Hm)");
  EXPECT_EQ(shown_whole(" \n"), "' \n'") << "all there is";
  EXPECT_EQ(shown_whole(" \nHi "), "' \nHi '");
  EXPECT_EQ(shown_whole(""), "");
}

TEST(reply_reader, reads_what_was_cut) {
  EXPECT_EQ(shown_whole("<think>Hm, so", true), "(Hm, so)");
  EXPECT_EQ(shown_whole("Hi <tool_call>{\"name\": \"go\", \"argu", true), "'Hi '[go]");
  EXPECT_EQ(shown_whole("Hi <tool_c", true), "'Hi <tool_c'");
}

TEST(reply_reader, waits_for_results_of_whole_calls_alone) {
  const auto waits = [](const std::string& text) {
    reply_reader of_answer = reader();
    of_answer.read_whole(text, true);
    return of_answer.waits_for_results();
  };
  EXPECT_TRUE(waits(tagged_call));
  EXPECT_TRUE(waits(std::string(tagged_call).substr(0, 40))) << "the tag alone is missing";
  EXPECT_FALSE(waits(R"(<tool_call>{"name":"go","arguments":{"x)"));
  EXPECT_FALSE(waits(std::string(tagged_call) + R"(<tool_call>{"name":"go","arguments":{"x)"));
  EXPECT_FALSE(waits("Hi"));
}

TEST(reply_reader, takes_no_stop_text_that_closes_a_call_for_a_cut) {
  for (const char* closing : {"</tool_call>", "<tool_call|>"})
    EXPECT_FALSE(would_have_gone_on({.finish = "stop", .stopped_by = {.text = closing}})) << closing;
  EXPECT_TRUE(would_have_gone_on({.finish = "stop", .stopped_by = {.text = "cat"}}));
}

TEST(reply_reader, reads_letter_by_letter_what_it_reads_at_once) {
  const std::string written = std::string("<think>Hm</think>\nHi\n") + tagged_call + "\nyes";
  reply_reader by_letter = reader();
  std::string thought, text;
  int calls = 0;
  const auto take = [&](const std::vector<reply_piece>& pieces) {
    for (const reply_piece& each : pieces) {
      if (each.is == reply_piece::kind::thought) thought += each.text;
      if (each.is == reply_piece::kind::text) text += each.text;
      calls += each.is == reply_piece::kind::call;
    }
  };
  for (const char each : written) take(by_letter.push({&each, 1}));
  take(by_letter.finish(false));
  EXPECT_EQ(thought, "Hm");
  EXPECT_EQ(text, "Hi\n\nyes");
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(by_letter.waits_for_results());
}

}  // namespace
}  // namespace troupe::test
