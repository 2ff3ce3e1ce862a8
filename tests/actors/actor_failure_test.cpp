#include "actors/actor_failure.hpp"

#include <future>

#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

using faulty_actor = actor_of<wake, stop_now>;

/// Throws when it is made, or when it is woken.
struct faulty_state {
  using handle = faulty_actor;
  static constexpr const char* name = "faulty";

  faulty_state(handle::pointer own, bool at_once) : self(own) {
    if (at_once) throw std::runtime_error("it was made wrong");
  }
  handle::behavior_type make_behavior() {
    return {[](wake) { throw std::runtime_error("the disk is gone"); }, [this](stop_now) { self->quit(); }};
  }

  handle::pointer self;
};

[[noreturn]] void wait_for_the_end_of_one(bool at_once) {
  caf::actor_system_config config;
  caf::actor_system system{config};
  tell(spawn_state<faulty_state>(system, at_once), wake{});
  std::promise<void>().get_future().wait();
  std::abort();
}

TEST(an_actor_that_cannot_go_on, ends_its_process_and_says_why) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(wait_for_the_end_of_one(false), testing::ExitedWithCode(1),
              "troupe: faulty cannot go on: the disk is gone: this process ends");
  EXPECT_EXIT(wait_for_the_end_of_one(true), testing::ExitedWithCode(1), "it was made wrong");
}

TEST(await_ends, returns_when_actors_have_done_what_they_were_told) {
  caf::actor_system_config config;
  caf::actor_system system{config};
  const auto first = spawn_state<faulty_state>(system, false), second = spawn_state<faulty_state>(system, false);
  EXPECT_FALSE(await_ends(std::chrono::milliseconds(1), first));
  tell(first, stop_now{});
  EXPECT_TRUE(await_ends(std::chrono::seconds(10), first, faulty_actor()));
  tell(second, stop_now{});
  EXPECT_TRUE(await_ends(std::chrono::seconds(10), first, second)) << "also who has ended long ago";
}

}  // namespace
}  // namespace troupe::test
