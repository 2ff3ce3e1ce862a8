#include "cluster/launch/detachment.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>

#include "tests/base/soon.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;

class a_detachment : public testing::Test {
 protected:
  test::temp_folder folder_;
};

/// Detaches in a child, so that this process keeps its threads and output. Returns what the caller would get.
detachment::outcome detached(const std::filesystem::path& log, const std::function<void(detachment&)>& daemon) {
  detachment split(log);
  if (split.is_daemon()) {
    daemon(split);
    ::_exit(0);
  }
  return split.wait([] { return false; });
}

/// A file that the test's process has locked. A daemon waits for it, and so lives until it is let go, at the latest
/// with that process: to a child such a lock does not go over.
class lifeline {
 public:
  explicit lifeline(std::filesystem::path file) : file_(std::move(file)), held_(open_locked(F_TLOCK)) {}

  void cut() { held_.close(); }
  void wait_until_cut() const { (void)open_locked(F_LOCK); }

 private:
  file_descriptor open_locked(int how) const {
    file_descriptor opened(::open(file_.c_str(), O_RDWR | O_CLOEXEC));
    EXPECT_EQ(::lockf(opened.number(), how, 0), 0);
    return opened;
  }

  std::filesystem::path file_;
  file_descriptor held_;
};

TEST_F(a_detachment, a_daemon_tells_when_it_is_ready) {
  const auto log = folder_.path() / "state/logs/up.log";
  const auto outcome = detached(log, [&](detachment& split) {
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, "hello log\n", 10);
    folder_.write("session", std::to_string(::getsid(0)));
    split.report(0, "ready at http://127.0.0.1:8000\n(two lines)");
  });
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.text, "ready at http://127.0.0.1:8000\n(two lines)");
  EXPECT_EQ(folder_.read("state/logs/up.log"), "hello log\n");
  EXPECT_NE(folder_.read("session"), std::to_string(::getsid(0)));
}

TEST_F(a_detachment, whoever_waits_for_a_daemon_may_give_up) {
  lifeline life(folder_.write("life", ""));
  detachment split(folder_.path() / "up.log");
  if (split.is_daemon()) {
    life.wait_until_cut();
    ::_exit(0);
  }
  int asked = 0;
  EXPECT_EQ(split.wait([&] { return ++asked == 2; }).code, 1);
  EXPECT_EQ(asked, 2);
  EXPECT_FALSE(split.is_settled());
  life.cut();
  EXPECT_TRUE(test::is_soon([&] { return split.is_settled(); })) << "it has ended";
}

TEST_F(a_detachment, a_daemon_keeps_no_lock_of_its_caller) {
  lifeline life(folder_.write("life", ""));
  const auto file = folder_.write("lock", "");
  file_descriptor held(::open(file.c_str(), O_RDWR));  // as a shell's: programs inherit it
  ASSERT_EQ(::flock(held.number(), LOCK_EX | LOCK_NB), 0);
  const auto outcome = detached(folder_.path() / "up.log", [&](detachment& split) {
    split.report(0, "ready");
    life.wait_until_cut();
  });
  EXPECT_EQ(outcome.text, "ready");
  const file_descriptor next(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_NE(::flock(next.number(), LOCK_EX | LOCK_NB), 0);
  held.close();
  EXPECT_EQ(::flock(next.number(), LOCK_EX | LOCK_NB), 0) << "the daemon lives, and has it open";
}

TEST_F(a_detachment, a_daemon_tells_why_it_is_not) {
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
