// `troupe chat`: with a real cluster, and with a test as the head where what it asks matters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"
#include "tests/integration/played_head.hpp"

namespace troupe::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class chat : public testing::Test {
 protected:
  chat() : cluster_(site_, {.head_works = true}) {}

  void up_with_template() {
    site_.give_chat_template();
    cluster_.up();
  }
  /// What is said to stderr about a conversation.
  std::string complaints(const std::string& lines, const std::string& flag = "--max-tokens=2", int code = 2) const {
    const auto said = site_.write("lines", lines);
    process talk({"/bin/sh", "-c", R"("$0" chat --connect "$1" "$2" < "$3")", TROUPE_BINARY, cluster_.endpoint(), flag,
                  said.string()},
                 site_.path("chat"));
    EXPECT_EQ(talk.wait(), code);
    return talk.error();
  }

  test_site site_;
  test_cluster cluster_;
  const std::string too_long_ = std::string(5000, 'a') + "\n";
};

TEST_F(chat, says_how_to_begin_anew_where_the_conversation_is_longer_than_the_context) {
  up_with_template();
  EXPECT_THAT(complaints("hello\n" + too_long_), HasSubstr("/clear begins a new one"));
  EXPECT_THAT(complaints(too_long_), HasSubstr("shorten the prompt")) << "nothing was said that could be cleared";
  EXPECT_EQ(complaints("hello\n", "--max-tokens=2", 0), "");
}

TEST_F(chat, names_a_setting_that_the_model_refuses_by_its_flag) {
  up_with_template();
  EXPECT_THAT(complaints("hello\n", "--stop-token=99999"), HasSubstr("troupe: --stop-token names token 99999"));
}

TEST_F(chat, ends_at_once_where_the_model_has_no_chat_template) {
  cluster_.up();
  EXPECT_EQ(complaints("hello\nyou\n", "--max-tokens=2"),
            "troupe: model: has no chat template, as chat_template.jinja in its folder would be: give the prompt as "
            "plain text; troupe submit takes one\n");
}

class conversation : public testing::Test {
 protected:
  /// Starts it with these lines.
  void begin(const std::string& lines, const words& flags = {}) {
    words command{"/bin/sh",
                  "-c",
                  R"(lines=$1; shift; exec "$0" "$@" < "$lines")",
                  TROUPE_BINARY,
                  folder_.write("lines", lines).string(),
                  "chat",
                  "--connect",
                  head_.endpoint()};
    command.insert(command.end(), flags.begin(), flags.end());
    talk_.emplace(command, folder_.path() / "said");
  }
  /// The roles and texts of the next request, which gets this answer.
  std::string asked(const std::string& answer) {
    asked_ = head_.answer(answer);
    std::string all;
    for (const json& each : json::parse(asked_.messages))
      all += each.at("role").get<std::string>() + ":" + each.at("content").get<std::string>() + " ";
    return all;
  }
  std::string said() {
    EXPECT_EQ(talk_->wait(), 0) << talk_->error();
    return talk_->out();
  }

  const temp_folder folder_;
  played_head head_{[](const client_command&) { return json::parse(R"([{"name": "blue"}])"); }};
  std::optional<process> talk_;
  client_request asked_;
};

TEST_F(conversation, goes_along_with_each_message_until_it_is_cleared) {
  begin("one\n\ntwo\n/clear\nthree\n", {"--system", "be brief"});
  EXPECT_EQ(asked("A"), "system:be brief user:one ");
  EXPECT_EQ(asked("B"), "system:be brief user:one assistant:A user:two ");
  EXPECT_EQ(asked("C"), "system:be brief user:three ");
  EXPECT_EQ(said(), "A\nB\nC\n");
}

TEST_F(conversation, has_messages_as_they_were_typed) {
  begin("a\tb \r\n");
  EXPECT_EQ(asked("A"), "user:a\tb  ");
  EXPECT_EQ(said(), "A\n");
}

TEST_F(conversation, stops_an_answer_by_ctrl_c_and_ends_by_other_signals) {
  begin("one\ntwo\n");
  (void)head_.asked();
  talk_->signal(SIGINT);
  const client_request second = head_.asked();
  EXPECT_THAT(second.messages, HasSubstr("two"));
  talk_->signal(SIGTERM);
  EXPECT_EQ(talk_->wait(), 143);
}

TEST_F(conversation, is_answered_by_the_adapter_that_was_named_last) {
  begin("one\n/adapter blue\ntwo\n/adapter\nthree\n", {"--adapter", "red", "--max-tokens", "9"});
  for (const char* adapter : {"red", "blue", ""}) {
    (void)asked("A");
    EXPECT_EQ(asked_.adapter, adapter);
    EXPECT_EQ(asked_.sampling.max_tokens, 9);
  }
  EXPECT_EQ(json::parse(asked_.messages).size(), 5u) << "they hear what others said";
  EXPECT_EQ(said(), "A\nA\nA\n");
}

TEST_F(conversation, goes_on_without_thoughts_that_special_tokens_tell) {
  head_.say_in_hello({{"thought_begin", "[THINK]"}, {"thought_end", "[/THINK]"}});
  begin("one\ntwo\nthree\n");
  (void)asked("[THINK]Hm[/THINK]A");
  EXPECT_EQ(asked("[THINK]Hm"), "user:one assistant:A user:two ");
  EXPECT_EQ(asked("C"), "user:one assistant:A user:two assistant: user:three ");
  EXPECT_EQ(said(), "[THINK]Hm[/THINK]A\n[THINK]Hm\nC\n") << "which are shown";
}

TEST_F(conversation, goes_on_without_the_marks_of_answers) {
  head_.say_in_hello(
      {{"thought_begin", "<T>"}, {"thought_end", "</T>"}, {"answer_begin", "<A>"}, {"answer_end", "</A>"}});
  begin("one\ntwo\n");
  (void)asked("<T>Hm</T><A>A</A>");
  EXPECT_EQ(asked("B"), "user:one assistant:A user:two ");
  EXPECT_EQ(said(), "<T>Hm</T><A>A</A>\nB\n") << "which are shown";
}

TEST_F(conversation, goes_on_with_thoughts_that_the_template_knows_as_a_text) {
  head_.say_in_hello({{"thought_begin", ""}, {"thought_end", ""}});
  begin("one\ntwo\n");
  (void)asked("<think>Hm</think>A");
  EXPECT_EQ(asked("B"), "user:one assistant:<think>Hm</think>A user:two ");
  EXPECT_EQ(said(), "<think>Hm</think>A\nB\n");
}

TEST_F(conversation, says_at_once_that_an_adapter_is_not_there) {
  begin("/adapter green\n/adapter blue@2\n/adapter\n/adapter base\n");
  EXPECT_EQ(said(), "");
  EXPECT_EQ(talk_->error().find("troupe: adapter green: there is none yet"), 0u) << talk_->error();
  EXPECT_EQ(talk_->error().find("blue"), std::string::npos) << talk_->error();
  EXPECT_EQ(head_.commanded("adapters.list").front().at("after"), "green");
}

TEST_F(conversation, looks_for_an_adapter_by_its_name_alone_and_for_no_base) {
  head_.say_in_hello({{"model", "letters"}});
  begin("/adapter letters\n/adapter letters.gguf\n/adapter base:blue\n/adapter letters:blue@1\n/adapter green hat\n");
  EXPECT_EQ(said(), "");
  EXPECT_EQ(talk_->error(), "");
  const auto looked = head_.commanded("adapters.list");
  ASSERT_EQ(looked.size(), 2u);
  for (const json& each : looked) EXPECT_EQ(each.at("after"), "blue");
}

TEST_F(conversation, ends_where_the_user_says_so_and_tells_other_words_what_there_is) {
  begin("/what\none\n/quit\ntwo\n");
  EXPECT_EQ(asked("A"), "user:one ");
  EXPECT_THAT(said(), AllOf(HasSubstr("/adapter NAME answers with an adapter"), EndsWith("\nA\n")));
}

}  // namespace
}  // namespace troupe::test
