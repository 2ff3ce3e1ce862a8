// `troupe top` on a terminal.
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>
#include <future>
#include <optional>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "base/to_size.hpp"
#include "tests/integration/cluster.hpp"
#include "tests/integration/played_head.hpp"

namespace troupe::test {
namespace {

using ::testing::HasSubstr;

constexpr winsize common_size{24, 80, 0, 0};

class top : public testing::Test {
 protected:
  top() {
    int ours = -1, theirs = -1;
    EXPECT_EQ(::openpty(&ours, &theirs, nullptr, nullptr, &common_size), 0);
    ours_ = file_descriptor(ours);
    theirs_ = file_descriptor(theirs);
  }
  process start(const played_head& head) const {
    return {{"/bin/sh", "-c", R"(exec "$0" top --connect "$1" < "$2" > "$2")", TROUPE_BINARY, head.endpoint(),
             ::ptsname(ours_.number())},
            folder_.path() / "said"};
  }
  void type(char key) const { EXPECT_TRUE(write_all(ours_.number(), {&key, 1})); }
  /// What the terminal shows once all of it has come.
  std::vector<std::string> shown() const {
    std::string seen;
    pollfd input{ours_.number(), POLLIN, 0};
    char bytes[4096];
    while (seen.find("q ends") == seen.npos && ::poll(&input, 1, 15'000) == 1) {
      const auto got = ::read(ours_.number(), bytes, sizeof bytes);
      if (got <= 0) break;
      seen.append(bytes, to_size(got));
    }
    std::erase(seen, '\r');
    constexpr std::string_view cleared = "\x1b[J";
    const auto begin = seen.rfind(cleared);
    std::istringstream from(begin == seen.npos ? "" : seen.substr(begin + cleared.size()));
    std::vector<std::string> lines;
    for (std::string line; std::getline(from, line);) lines.push_back(line);
    return lines;
  }

  const temp_folder folder_;
  file_descriptor ours_, theirs_;
};

TEST_F(top, shows_something_of_each_table_within_its_terminal) {
  json status;
  for (int i = 0; i < 40; ++i) {
    const std::string number = std::to_string(i);
    status["nodes"].push_back({{"name", "w" + number}, {"state", i < 39 ? "alive" : "lost"}, {"host", "10.0.0.1"}});
    status["adapters"].push_back(
        {{"version", "a" + number + "@1"}, {"state", "ready"}, {"sha256", std::string(64, 'a')}});
    status["jobs"].push_back({{"id", "batch-" + std::string(32, 'b')}, {"kind", "batch"}, {"state", "queued"}});
  }
  status["jobs"].push_back({{"id", "ftjob-1"}, {"kind", "fine-tune"}, {"state", "running"}});
  const json stage = json::parse(R"({"layers":"0-31","workers":["a-worker-of-many","and-another"]})");
  status["replicas"].push_back({{"replica", 0}, {"state", "running"}, {"tokens_per_second", 4321}});
  status["replicas"][0]["stages"] = json::array({stage, stage, stage});
  const played_head head([&](const client_command&) { return status; });
  process watching = start(head);
  const auto lines = shown();
  EXPECT_LT(lines.size(), std::size_t{common_size.ws_row}) << "the cursor has a row of its own";
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };
  std::string all;
  for (const std::string& line : lines) {
    EXPECT_LE(std::ranges::count_if(line, begins_character), common_size.ws_col) << line;
    all += line + "\n";
  }
  for (const char* part : {"4321 tokens/s, ", "\nNODE ", "\nw39   lost ", "\nREPLICA ", " 4321 ", "\nADAPTER ",
                           "\nJOB ", "\nftjob-1 ", "more lines\n", " and 39 more: troupe jobs\n", "\nq ends\n"})
    EXPECT_THAT(all, HasSubstr(part));
  type('q');
  EXPECT_EQ(watching.wait(), 0) << watching.error();
}

TEST_F(top, shares_its_rows_between_many_adapters_and_many_jobs) {
  constexpr winsize large{60, 200, 0, 0};
  ASSERT_EQ(::ioctl(ours_.number(), TIOCSWINSZ, &large), 0);
  json status;
  status["nodes"].push_back({{"name", "w0"}, {"state", "alive"}});
  for (int i = 0; i < 113; ++i) status["adapters"].push_back({{"version", fmt::format("a{}@1", i)}});
  for (int i = 0; i < 155; ++i) status["jobs"].push_back({{"id", fmt::format("batch-{}", i)}, {"state", "queued"}});
  const played_head head([&](const client_command&) { return status; });
  process watching = start(head);
  const auto lines = shown();
  EXPECT_EQ(lines.size(), std::size_t{large.ws_row} - 1) << "no row is left free";
  const auto count = [&](std::string_view begin) {
    return std::ranges::count_if(lines, [&](const std::string& line) { return line.starts_with(begin); });
  };
  EXPECT_GE(count("a"), 20);
  EXPECT_GE(count("batch-"), 20);
  type('q');
  EXPECT_EQ(watching.wait(), 0) << watching.error();
}

TEST_F(top, cuts_its_first_line_too) {
  constexpr winsize narrow{24, 30, 0, 0};
  ASSERT_EQ(::ioctl(ours_.number(), TIOCSWINSZ, &narrow), 0);
  const played_head head([](const client_command&) { return json{{"jobs", json::array()}}; });
  process watching = start(head);
  const auto lines = shown();
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.front(), "0 tokens/s, 0 sequences runni…") << "a longer one would push itself out";
  type('q');
  EXPECT_EQ(watching.wait(), 0) << watching.error();
}

TEST_F(top, ends_by_q_also_while_the_head_does_not_answer) {
  std::promise<void> is_asked_again, may_answer;
  int asked = 0;
  const played_head head([&](const client_command&) {
    if (++asked == 2) {
      is_asked_again.set_value();
      may_answer.get_future().wait();
    }
    return json{{"jobs", json::array()}};
  });
  process watching = start(head);
  const auto again = is_asked_again.get_future().wait_for(std::chrono::seconds(15));
  EXPECT_EQ(again, std::future_status::ready);
  type('q');
  EXPECT_EQ(watching.wait(), 0) << watching.error();
  may_answer.set_value();
}

TEST_F(top, ends_by_q_also_after_a_shell_has_taken_the_terminal_back) {
  const played_head head([](const client_command&) { return json{{"jobs", json::array()}}; });
  process watching = start(head);
  EXPECT_FALSE(shown().empty());
  termios now{};
  ASSERT_EQ(::tcgetattr(theirs_.number(), &now), 0);
  EXPECT_EQ(now.c_lflag & ICANON, 0u);
  now.c_lflag |= ICANON | ECHO;  // as a shell has it by Ctrl-Z and fg
  ASSERT_EQ(::tcsetattr(theirs_.number(), TCSANOW, &now), 0);
  EXPECT_TRUE(wait_until([&] { return ::tcgetattr(theirs_.number(), &now) == 0 && (now.c_lflag & ICANON) == 0; }));
  type('q');
  EXPECT_EQ(watching.wait(), 0) << watching.error();
}

TEST_F(top, leaves_its_terminal_alone_where_it_writes_elsewhere) {
  bool are_lines_read = false;
  const played_head head([&](const client_command&) {
    termios now{};
    are_lines_read = ::tcgetattr(theirs_.number(), &now) == 0 && (now.c_lflag & ICANON) != 0;
    return json{{"jobs", json::array()}};
  });
  process watching({"/bin/sh", "-c", R"(exec "$0" top --blocks 1 --connect "$1" < "$2")", TROUPE_BINARY,
                    head.endpoint(), ::ptsname(ours_.number())},
                   folder_.path() / "said");
  EXPECT_EQ(watching.wait(), 0) << watching.error();
  EXPECT_TRUE(are_lines_read);
}

}  // namespace
}  // namespace troupe::test
