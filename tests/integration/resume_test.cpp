// A client whose head dies and comes again, with the test as the head.
#include <gtest/gtest.h>

#include "tests/integration/played_head.hpp"
#include "tests/integration/process.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe::test {
namespace {

TEST(resuming, asks_the_next_head_for_the_version_that_had_begun) {
  const temp_folder folder;
  played_head head;
  process client({TROUPE_BINARY, "submit", "--tokens", "1,2", "--adapter", "x", "--connect", head.endpoint()},
                 folder.path() / "out");
  const client_request first = head.asked();
  EXPECT_EQ(first.adapter, "x");
  head.come_again();
  head.say({first.id, 0, "a", {1}, {}, {}, 0, "x@1"});
  const client_request second = head.asked();
  EXPECT_EQ(second.adapter, "x@1");
  EXPECT_EQ(second.skip_tokens, 1u);
  head.say({second.id, 0, "b", {2}, {}, "length", 2, "x@1"});
  EXPECT_EQ(client.wait(), 0) << client.error();
  EXPECT_EQ(client.out(), "ab\n");
}

TEST(resuming, goes_on_over_a_new_link_when_the_head_has_given_the_old_one_up) {
  const temp_folder folder;
  played_head head;
  process client({TROUPE_BINARY, "submit", "--tokens", "1,2", "--connect", head.endpoint()}, folder.path() / "out");
  head.say({head.asked().id, 0, "a", {1}, {}, {}, 0, ""});
  head.give_link_up();
  const client_request second = head.asked();
  EXPECT_EQ(second.skip_tokens, 1u);
  head.say({second.id, 0, "b", {2}, {}, "length", 2, ""});
  EXPECT_EQ(client.wait(), 0) << client.error();
  EXPECT_EQ(client.out(), "ab\n");
}

TEST(resuming, is_over_when_the_head_gives_every_link_up) {
  const temp_folder folder;
  played_head head;
  process client({TROUPE_BINARY, "submit", "--tokens", "1,2", "--connect", head.endpoint()}, folder.path() / "out");
  for (int links = 0; links < 2; ++links) {
    (void)head.asked();
    head.give_link_up();
  }
  EXPECT_EQ(client.wait(), 1);
  EXPECT_NE(client.error().find("has closed the link"), std::string::npos) << client.error();
}

}  // namespace
}  // namespace troupe::test
