#include "transport/http/lazy_deadline_impl.hpp"

#include <gtest/gtest.h>
#include <boost/asio/io_context.hpp>

namespace troupe::detail {
namespace {

using namespace std::chrono_literals;

/// run() returns when no timer is left.
struct deadline : testing::Test {
  deadline() {
    moment.start(owner, [this] { ++passed; });
  }

  boost::asio::io_context context;
  std::shared_ptr<int> owner = std::make_shared<int>();
  lazy_deadline moment{context.get_executor()};
  int passed = 0;
};

TEST_F(deadline, passes_once_and_not_before_the_moment_that_it_was_moved_to) {
  const auto end = lazy_deadline::steady::now() + 20ms;
  moment.set(1ms);
  moment.set_at(end);
  context.run();
  EXPECT_EQ(passed, 1);
  EXPECT_GE(lazy_deadline::steady::now(), end);
}

TEST_F(deadline, can_be_moved_to_an_earlier_moment) {
  moment.set(1h);
  moment.set(1ms);
  context.run();
  EXPECT_EQ(passed, 1);
}

TEST_F(deadline, does_not_pass_where_it_was_cleared) {
  moment.set(1ms);
  moment.clear();
  context.run();
  EXPECT_EQ(passed, 0);
}

TEST_F(deadline, leaves_no_timer_behind_when_it_ends) {
  moment.set(1h);
  moment.end();
  context.run();
  EXPECT_EQ(passed, 0);
}

TEST_F(deadline, does_nothing_when_its_owner_has_gone) {
  moment.set(1ms);
  owner.reset();
  context.run();
  EXPECT_EQ(passed, 0);
}

}  // namespace
}  // namespace troupe::detail
