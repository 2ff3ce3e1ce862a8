#include "cli/cluster/head_silence.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using std::chrono::milliseconds;

TEST(head_silence, grows_with_what_a_client_waited_until_it_gives_up) {
  head_silence silence;
  silence.waited(milliseconds(1000));
  EXPECT_FALSE(silence.is_odd());
  silence.waited(milliseconds(100));
  EXPECT_TRUE(silence.is_odd());
  EXPECT_FALSE(silence.is_worth_a_note());
  silence.waited(milliseconds(4000));
  EXPECT_TRUE(silence.is_worth_a_note());
  EXPECT_FALSE(silence.is_worth_a_note()) << "once is enough";
  EXPECT_FALSE(silence.is_too_long());
  silence.waited(milliseconds(55'000));
  EXPECT_TRUE(silence.is_too_long());
}

TEST(head_silence, ends_with_every_word) {
  head_silence silence;
  silence.waited(milliseconds(59'900));
  EXPECT_TRUE(silence.is_worth_a_note());
  silence.heard();
  silence.waited(milliseconds(200));
  EXPECT_FALSE(silence.is_odd());
  EXPECT_FALSE(silence.is_too_long());
  silence.waited(milliseconds(5000));
  EXPECT_TRUE(silence.is_worth_a_note()) << "the next silence is another one";
}

}  // namespace
}  // namespace troupe
