#include "base/wake_signal.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include <poll.h>

namespace troupe {
namespace {

bool is_given(const wake_signal& signal) {
  pollfd awaited{signal.descriptor(), POLLIN, 0};
  return ::poll(&awaited, 1, 0) == 1;
}

TEST(wake_signal, can_be_waited_for_from_when_it_is_given_until_it_is_taken) {
  const wake_signal signal;
  EXPECT_FALSE(is_given(signal));
  signal.give();
  signal.give();
  EXPECT_TRUE(is_given(signal));
  signal.take();
  EXPECT_FALSE(is_given(signal));
  signal.take();  // waits for nothing
  signal.give();
  EXPECT_TRUE(is_given(signal));
}

TEST(wake_signal, leaves_the_error_of_what_it_interrupts) {
  const wake_signal signal;
  errno = ERANGE;
  signal.give();
  EXPECT_EQ(errno, ERANGE);
}

}  // namespace
}  // namespace troupe
