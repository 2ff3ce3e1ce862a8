// `troupe chat` with a real cluster.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

using ::testing::HasSubstr;

class chat : public testing::Test {
 protected:
  chat() : cluster_(site_, {.head_works = true}) {
    site_.give_chat_template();
    cluster_.up();
  }
  /// What is said to stderr about a conversation.
  std::string complaints(const std::string& lines) const {
    const auto said = site_.write("lines", lines);
    process talk({"/bin/sh", "-c", R"("$0" chat --connect "$1" --max-tokens 2 < "$2")", TROUPE_BINARY,
                  cluster_.endpoint(), said.string()},
                 site_.path("chat"));
    EXPECT_EQ(talk.wait(), 0);
    return talk.error();
  }

  test_site site_;
  test_cluster cluster_;
  const std::string too_long_ = std::string(5000, 'a') + "\n";
};

TEST_F(chat, says_how_to_begin_anew_where_the_conversation_is_longer_than_the_context) {
  EXPECT_THAT(complaints("hello\n" + too_long_), HasSubstr("/clear begins a new one"));
  EXPECT_THAT(complaints(too_long_), HasSubstr("shorten the prompt")) << "nothing was said that could be cleared";
}

}  // namespace
}  // namespace troupe::test
