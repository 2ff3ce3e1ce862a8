// `troupe chat` with a real cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

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
            "troupe: model: has no chat template: give the prompt as plain text; troupe submit takes one\n");
}

}  // namespace
}  // namespace troupe::test
