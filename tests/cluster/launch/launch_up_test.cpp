#include "cluster/launch/launch_up.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>

#include "base/error.hpp"
#include "cluster/launch/machine.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class launch_up : public testing::Test {
 protected:
  test::temp_folder folder_;
  const cluster_config config_ = parse_cluster_config(
      "[cluster]\nname = \"test\"\nstate_dir = \"state\"\n[model]\npath = \"none\"\n"
      "[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\", \"worker\"]\n",
      folder_.path() / "test.toml");
};

TEST_F(launch_up, only_one_up_at_a_time) {
  EXPECT_FALSE(find_up(config_));
  {
    const up_lock lock(config_);
    EXPECT_EQ(find_up(config_).value().pid, ::getpid());
    EXPECT_EQ(find_up(config_)->elsewhere, "");
    try {
      const up_lock second(config_);
      FAIL() << "two hold it up";
    } catch (const input_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("the cluster test is up already (process " + std::to_string(::getpid())));
    }
  }
  EXPECT_FALSE(find_up(config_));
  EXPECT_NO_THROW(up_lock{config_});
}

TEST_F(launch_up, makes_a_state_folder_that_others_cannot_read) {
  const up_lock lock(config_);
  EXPECT_EQ(std::filesystem::status(config_.state_dir).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(launch_up, is_not_called_ended_by_a_user_who_may_not_see_it) {
  const up_lock lock(config_);
  std::filesystem::permissions(config_.state_dir, std::filesystem::perms::none);
  const bool is_root = ::geteuid() == 0;  // whom no permissions keep out
  constexpr uid_t nobody = 65534;
  if (is_root && ::seteuid(nobody) != 0) GTEST_SKIP() << "this container has one user";
  EXPECT_THROW((void)find_up(config_), input_error);
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  std::filesystem::permissions(config_.state_dir, std::filesystem::perms::owner_all);
  EXPECT_TRUE(find_up(config_));
}

TEST_F(launch_up, what_is_up_on_another_machine_is_not_ended_here) {
  const up_lock lock(config_);
  const std::string own = folder_.read("state/up.pid");
  const pid_t bystander = ::fork();
  if (bystander == 0) {
    ::pause();
    ::_exit(0);
  }
  const std::string place = own.substr(own.find('\n')), number = std::to_string(bystander);
  const std::string host = machine_name();
  const auto refusal = [&] {
    try {
      (void)end_up(config_, 0s);
    } catch (const input_error& error) {
      return std::string(error.what());
    }
    return std::string("ended");
  };
  folder_.write("state/up.pid", number + "\nanother-host" + place.substr(1 + host.size()));
  EXPECT_THAT(refusal(), HasSubstr("the cluster test is up on another-host: end it there"));
  folder_.write("state/up.pid", number + "\n" + host + " another-boot pid:[1]\n");
  EXPECT_THAT(refusal(), HasSubstr("is up on another container of " + host));
  EXPECT_EQ(::waitpid(bystander, nullptr, WNOHANG), 0) << "it lives";
  ::kill(bystander, SIGKILL);
  ::waitpid(bystander, nullptr, 0);
}

TEST_F(launch_up, a_lock_ends_with_its_process) {
  std::filesystem::create_directories(config_.state_dir);
  folder_.write("state/up.pid", "1234567\n");
  EXPECT_FALSE(find_up(config_)) << "a file that is left over means nothing";
  EXPECT_NO_THROW(up_lock{config_});
}

TEST_F(launch_up, down_ends_up_and_waits_for_it) {
  const pid_t child = ::fork();
  if (child == 0) {
    const up_lock lock(config_);
    ::pause();
    ::_exit(0);
  }
  const monotonic_clock time;
  const instant end = time.now() + 10s;
  while (!find_up(config_) && time.now() < end) ::usleep(2000);
  EXPECT_EQ(find_up(config_).value().pid, child);
  EXPECT_TRUE(end_up(config_, 10s));
  EXPECT_FALSE(find_up(config_));
  EXPECT_TRUE(end_up(config_, 0s)) << "there is nothing to end";
  ::waitpid(child, nullptr, 0);
}

/// Detaches in a child, so that this process keeps its threads and output. Returns what the caller would get.
detachment::outcome detached(const std::filesystem::path& log, const std::function<void(detachment&)>& daemon) {
  detachment split(log);
  if (split.is_daemon()) {
    daemon(split);
    ::_exit(0);
  }
  return split.wait([] { return false; });
}

TEST_F(launch_up, a_daemon_tells_when_it_is_ready) {
  const auto log = folder_.path() / "state/logs/up.log";
  const auto outcome = detached(log, [&](detachment& split) {
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, "hello log\n", 10);
    folder_.write("session", std::to_string(::getsid(0) != ::getppid()) + " " + std::to_string(::getpid()));
    split.report(0, "ready at http://127.0.0.1:8000\n(two lines)");
  });
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text, "ready at http://127.0.0.1:8000\n(two lines)");
  EXPECT_EQ(folder_.read("state/logs/up.log"), "hello log\n");
}

TEST_F(launch_up, whoever_waits_for_a_daemon_may_give_up) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  detachment split(folder_.path() / "up.log");
  if (split.is_daemon()) {  // lives as long as the test's end of the pipe
    char byte = 0;
    ::close(ends[1]);
    ::_exit(static_cast<int>(::read(ends[0], &byte, 1)));
  }
  int asked = 0;
  EXPECT_EQ(split.wait([&] { return ++asked == 2; }).code, 1);
  EXPECT_EQ(asked, 2);
  for (const int end : ends) ::close(end);
}

TEST_F(launch_up, a_daemon_tells_why_it_is_not) {
  const auto log = folder_.path() / "up.log";
  const auto refused = detached(log, [](detachment& split) { split.report(2, "no such model"); });
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.text, "no such model");
  const auto died = detached(log, [](detachment&) { ::raise(SIGKILL); });
  EXPECT_EQ(died.code, 1);
  EXPECT_THAT(died.text, HasSubstr("up.log"));
}

}  // namespace
}  // namespace troupe
