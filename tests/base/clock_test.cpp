#include "base/clock.hpp"

#include <gtest/gtest.h>

#include "tests/base/manual_clock.hpp"

namespace troupe {
namespace {

using test::manual_clock;

TEST(manual_clock, stands_still_until_it_is_moved) {
  manual_clock time;
  const instant start = time.now();
  EXPECT_EQ(time.now(), start);
  time.advance(std::chrono::seconds(2));
  EXPECT_EQ(time.now() - start, std::chrono::seconds(2));
}

TEST(monotonic_clock, never_goes_back) {
  const monotonic_clock time;
  instant last = time.now();
  for (int i = 0; i < 1000; ++i) {
    const instant next = time.now();
    ASSERT_GE(next, last);
    last = next;
  }
}

}  // namespace
}  // namespace troupe
