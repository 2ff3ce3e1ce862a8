#include "cluster/launch/detachment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
  EXPECT_FALSE(split.is_settled());
  for (const int end : ends) ::close(end);
  EXPECT_TRUE(test::is_soon([&] { return split.is_settled(); })) << "it has ended";
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
