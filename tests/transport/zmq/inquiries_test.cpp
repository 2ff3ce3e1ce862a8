#include "transport/zmq/inquiries.hpp"

#include <atomic>
#include <future>
#include <memory>

#include <gtest/gtest.h>

#include "tests/base/soon.hpp"

namespace troupe::detail {
namespace {

using test::is_soon;

TEST(inquiries, are_asked_so_many_at_a_time) {
  std::promise<void> known;
  const std::shared_future<void> found = known.get_future().share();
  std::atomic<int> taken{0};
  inquiries asked(2);
  const auto ask = [&] {
    asked.ask([found, &taken] {
      found.wait();
      return [&taken] { ++taken; };
    });
    asked.begin();
  };
  ask();
  EXPECT_FALSE(asked.may_begin()) << "nothing is left to ask";
  ask();
  ask();
  EXPECT_FALSE(asked.may_begin()) << "two have no answer yet";
  known.set_value();
  ASSERT_TRUE(is_soon([&] { return taken == 2; }));
  ASSERT_TRUE(asked.may_begin());
  asked.begin();
  EXPECT_TRUE(is_soon([&] { return taken == 3; }));
  asked.end();
}

TEST(inquiries, tell_nobody_who_has_gone) {
  std::promise<void> known;
  const auto taken = std::make_shared<std::atomic<bool>>(false);
  inquiries asked(1);
  asked.ask([found = known.get_future().share(), taken] {
    found.wait();
    return [taken] { *taken = true; };
  });
  asked.begin();
  asked.end();
  known.set_value();
  ASSERT_TRUE(is_soon([&] { return taken.use_count() == 1; })) << "the thread has ended";
  EXPECT_FALSE(*taken);
}

}  // namespace
}  // namespace troupe::detail
