#include "model/engine/scheduling/adapter_slots.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

constexpr adapter_version a{1}, b{2}, c{3};

TEST(adapter_slots, bound_the_adapters_that_run) {
  adapter_slots slots(1);
  adapter_use& first = slots.wait(a, 0);
  adapter_use& second = slots.wait(b, 0);
  adapter_use& base = slots.wait(no_adapter, 0);
  slots.start(first, 0);
  slots.stop_waiting(first, 0);
  EXPECT_TRUE(slots.can_start(first));
  EXPECT_FALSE(slots.can_start(second));
  EXPECT_TRUE(slots.can_start(base));
  slots.stop_running(first, 1);
  EXPECT_TRUE(slots.can_start(second));
  EXPECT_EQ(slots.known(), 2u);
}

TEST(adapter_slots, know_who_waits_longest) {
  adapter_slots slots(1);
  adapter_use& first = slots.wait(a, 5);
  adapter_use& second = slots.wait(b, 3);
  slots.wait(no_adapter, 0);
  EXPECT_EQ(slots.overdue(12, 10), nullptr);
  EXPECT_EQ(slots.overdue(13, 10), &second);
  slots.set_claimed(second, true, 13);
  EXPECT_EQ(slots.overdue(14, 10), nullptr);
  EXPECT_EQ(slots.overdue(15, 10), &first);
}

TEST(adapter_slots, count_the_wait_anew_after_each_run) {
  adapter_slots slots(2);
  adapter_use& use = slots.wait(c, 0);
  slots.start(use, 1);
  EXPECT_TRUE(slots.is_running(c));
  EXPECT_EQ(slots.overdue(100, 10), nullptr);
  slots.stop_running(use, 100);
  EXPECT_EQ(slots.overdue(105, 10), nullptr);
  EXPECT_EQ(slots.overdue(110, 10), &use);
  slots.stop_waiting(use, 110);
  EXPECT_EQ(slots.known(), 0u);
}

}  // namespace
}  // namespace troupe::detail
