#include "cluster/launch/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "base/shell_word.hpp"
#include "tests/base/manual_clock.hpp"
#include "tests/base/open_files.hpp"
#include "tests/base/sanitized.hpp"
#include "tests/base/soon.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;
using test::manual_clock;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

/// Nodes that are shell scripts: the script gets `node FILE --name X`.
class launch : public testing::Test {
 protected:
  cluster_config config(const std::string& worker_lines = "", const std::string& cluster_lines = "") const {
    return parse_cluster_config("[cluster]\nname = \"test\"\nstate_dir = \"state\"\n" + cluster_lines +
                                    "[model]\npath = \"none\"\n"
                                    "[[node]]\nname = \"head\"\nroles = [\"router\", \"scheduler\"]\n"
                                    "[[node]]\nname = \"w0\"\nroles = [\"worker\"]\n" +
                                    worker_lines,
                                folder_.path() / "test.toml");
  }

  std::filesystem::path script(const std::string& text, const std::string& name = "program") const {
    const auto file = folder_.write(name, "#!/bin/sh\ncd '" + folder_.path().string() + "'\n" + text + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }

  launcher::options with(const std::filesystem::path& program) {
    launcher::options chosen;
    chosen.program = program;
    chosen.restart.first_wait = 1ms;
    chosen.restart.longest_wait = 5ms;
    chosen.stop_patience = 5s;
    chosen.say = [this](const std::string& line) { said_.push_back(line); };
    return chosen;
  }

  static std::optional<node_process> find(const launcher& launched, const std::string& name) {
    for (const node_process& node : launched.nodes())
      if (node.name == name) return node;
    return {};
  }

  /// Lets the launcher work until a condition is true, at most for ten seconds.
  static bool poll_until(launcher& launched, const std::function<bool()>& is_so) {
    const monotonic_clock time;
    const instant end = time.now() + 10s;
    while (!is_so()) {
      if (time.now() >= end) return false;
      launched.poll(5ms);
    }
    return true;
  }
  static bool poll_until_replaced(launcher& launched, const std::string& name, pid_t process) {
    return poll_until(launched, [&] {
      const pid_t now = find(launched, name)->pid;
      return now != 0 && now != process;
    });
  }
  bool poll_until_written(launcher& launched, const std::string& name, const std::string& words) {
    return poll_until(launched, [&] { return folder_.read(name).find(words) != std::string::npos; });
  }

  /// A process that nobody has waited for yet counts as dead.
  static bool is_alive(pid_t pid) {
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    return std::getline(stat, line) && line.find(") Z ") == std::string::npos;
  }

  test::temp_folder folder_;
  std::vector<std::string> said_;
};

const std::string serve = "echo \"$4 started\"; exec sleep 1000";

TEST_F(launch, starts_the_nodes_with_a_log_each_and_stops_them) {
  launcher launched(config(), with(script("echo \"args: $@\"; echo trouble >&2; " + serve)));
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "state/logs/head.log", "head started"));
  ASSERT_TRUE(poll_until_written(launched, "state/logs/w0.log", "w0 started"));
  EXPECT_THAT(folder_.read("state/logs/w0.log"),
              HasSubstr("args: node " + (folder_.path() / "test.toml").string() + " --name w0 --listed\ntrouble\n"));
  const auto nodes = launched.nodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].name, "head");
  for (const auto& node : nodes) {
    EXPECT_EQ(node.state, process_state::running);
    EXPECT_TRUE(is_alive(node.pid));
    EXPECT_EQ(::getpgid(node.pid), node.pid) << "a process group of its own";
    EXPECT_EQ(::getsid(node.pid), ::getsid(0)) << "where trainers are idle beside workers";
  }
  launched.stop();
  for (const auto& node : nodes) EXPECT_FALSE(is_alive(node.pid));
  EXPECT_EQ(find(launched, "w0")->last_end, "signal 15 (Terminated)");
  EXPECT_FALSE(find(launched, "nobody"));
}

TEST_F(launch, starts_again_what_was_killed) {
  launcher launched(config(), with(script(serve)));
  launched.start();
  const pid_t first = find(launched, "w0")->pid;
  launched.replace_node("w0", "it is lost");
  ASSERT_TRUE(poll_until_replaced(launched, "w0", first));
  EXPECT_EQ(find(launched, "w0")->last_end, "signal 9 (Killed)");
  EXPECT_THAT(said_, ElementsAre("w0 hangs, or cannot be reached: it is lost, so its process is killed",
                                 HasSubstr("w0 died (signal 9 (Killed)): it is started again in ")));
}

TEST_F(launch, kills_one_that_is_stopped) {
  launcher launched(config(), with(script(serve)));
  launched.start();
  const pid_t first = find(launched, "w0")->pid;
  ::kill(first, SIGSTOP);
  launched.replace_node("w0", "it is lost");
  EXPECT_TRUE(poll_until_replaced(launched, "w0", first));
  ::kill(find(launched, "w0")->pid, SIGSTOP);
  launched.stop();
  EXPECT_EQ(find(launched, "w0")->pid, 0);
}

TEST_F(launch, gives_up_what_dies_again_and_again) {
  launcher launched(config(), with(script("[ $4 = head ] && exec sleep 1000; exit 1")));
  launched.start();
  ASSERT_TRUE(poll_until(launched, [&] { return find(launched, "w0")->state == process_state::given_up; }));
  EXPECT_EQ(find(launched, "w0")->quick_deaths, 6);
  EXPECT_THAT(said_, SizeIs(6));
  EXPECT_THAT(said_.back(), HasSubstr("w0 died 6 times in a row right after its start (exit code 1)"));
  EXPECT_THAT(said_.back(), HasSubstr("w0.log"));
}

/// What keeps it from its start, such as a full disk, may pass.
TEST_F(launch, does_not_give_up_what_has_worked_and_says_so_once) {
  launcher launched(config(), with(script("[ $4 = head ] || [ ! -e full ] && exec sleep 1000; echo >> tries; exit 1")));
  launched.start();
  launched.note_works("w0");
  folder_.write("full", "");
  launched.replace_node("w0", "it is lost");
  ASSERT_TRUE(poll_until(launched, [&] { return folder_.read("tries").size() > 20; }));
  EXPECT_NE(find(launched, "w0")->state, process_state::given_up);
  EXPECT_EQ(find(launched, "head")->state, process_state::running);
  EXPECT_THAT(said_, SizeIs(7)) << "the first is why it was killed";
  EXPECT_THAT(said_.back(), HasSubstr("w0 died 6 times in a row right after its start (exit code 1), and has worked "
                                      "before: it is started again every "));
}

TEST_F(launch, leaves_what_refuses_or_has_done_its_work) {
  launcher launched(config(), with(script("[ $4 = head ] && exit 0; exit 2")));
  launched.start();
  ASSERT_TRUE(poll_until(launched, [&] { return !find(launched, "head")->pid && !find(launched, "w0")->pid; }));
  EXPECT_EQ(find(launched, "head")->state, process_state::ended);
  EXPECT_EQ(find(launched, "w0")->state, process_state::given_up);
  EXPECT_TRUE(find(launched, "w0")->refused);
  EXPECT_THAT(said_, Contains(HasSubstr("w0 refuses to start (exit code 2)")));
}

TEST_F(launch, does_not_respawn_where_that_is_not_wanted) {
  launcher launched(config("", "respawn = false\n"), with(script(serve)));
  launched.start();
  const pid_t worker = find(launched, "w0")->pid;
  launched.replace_node("w0", "it is lost");
  EXPECT_THAT(said_, IsEmpty()) << "one that was lost may join again";
  ::kill(worker, SIGTERM);
  ASSERT_TRUE(poll_until(launched, [&] { return find(launched, "w0")->state == process_state::given_up; }));
  EXPECT_EQ(find(launched, "w0")->last_end, "signal 15 (Terminated)");
}

TEST_F(launch, leaves_alone_what_starts_by_itself) {
  launcher launched(config("[[node]]\nname = \"late\"\nroles = [\"worker\"]\nautostart = false\n"),
                    with(script(serve)));
  launched.start();
  EXPECT_FALSE(find(launched, "late"));
}

TEST_F(launch, kills_who_does_not_end_with_all_that_it_started) {
  launcher::options chosen = with(script("trap '' TERM; sleep 1000 & echo $! > \"$4.pid\"; wait"));
  chosen.stop_patience = 20ms;
  launcher launched(config(), chosen);
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "w0.pid", "\n"));
  const pid_t own = find(launched, "w0")->pid, its_child = std::stoi(folder_.read("w0.pid"));
  launched.stop();
  EXPECT_THAT(said_, Contains("w0 does not end: killed"));
  EXPECT_FALSE(is_alive(own));
  EXPECT_TRUE(poll_until(launched, [&] { return !is_alive(its_child); }));
}

TEST_F(launch, says_that_there_is_no_program) {
  launcher launched(config(), with(folder_.path() / "nowhere"));
  EXPECT_THROW(launched.start(), input_error);
}

TEST_F(launch, keeps_logs_bounded) {
  std::filesystem::create_directories(folder_.path() / "state/logs");
  folder_.write("state/logs/w0.log", std::string(1000, 'x'));
  launcher::options chosen = with(script(serve));
  chosen.log_bytes = 500;
  launcher launched(config(), chosen);
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "state/logs/w0.log", "w0 started"));
  EXPECT_LT(folder_.read("state/logs/w0.log").size(), 100u);
  EXPECT_EQ(folder_.read("state/logs/w0.log.1").size(), 1000u);
}

TEST_F(launch, a_log_that_cannot_be_copied_stays) {
  auto chosen = with(script(serve));
  manual_clock time;
  chosen.time = &time;
  chosen.log_bytes = 500;
  std::filesystem::create_directories(folder_.path() / "state/logs/w0.log.1/taken");
  launcher launched(config(), chosen);
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "state/logs/w0.log", "w0 started"));
  folder_.write("state/logs/w0.log", std::string(1000, 'x'));
  time.advance(1s);
  launched.poll(5ms);
  EXPECT_EQ(folder_.read("state/logs/w0.log").size(), 1000u);
}

TEST_F(launch, keeps_logs_bounded_while_nodes_and_it_write_them) {
  auto chosen = with(script(serve));
  manual_clock time;
  chosen.time = &time;
  chosen.log_bytes = 500;
  launcher launched(config(), chosen);
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "state/logs/w0.log", "w0 started"));
  for (const std::string log : {"state/logs/w0.log", "state/logs/up.log"}) folder_.write(log, std::string(1000, 'x'));
  time.advance(1s);
  launched.poll(5ms);
  for (const std::string log : {"state/logs/w0.log", "state/logs/up.log"}) {
    EXPECT_EQ(folder_.read(log), "") << log;
    EXPECT_EQ(folder_.read(log + ".1").size(), 1000u) << log;
  }
}

/// The descriptor that the next file would get.
int next_descriptor() {
  const int next = ::dup(STDIN_FILENO);
  ::close(next);
  return next;
}

TEST_F(launch, a_moment_without_descriptors_only_delays_a_restart) {
  if (sanitized) GTEST_SKIP() << "sanitizers look into memory through descriptors of their own";
  auto chosen = with(script(serve));
  chosen.restart.most_failures = 100'000;
  launcher launched(config(), chosen);
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "state/logs/w0.log", "w0 started"));
  const int next = next_descriptor();
  const auto runs_short = [&] {
    return std::any_of(said_.begin(), said_.end(),
                       [](auto& line) { return line.find("Too many open files") != std::string::npos; });
  };
  for (const int left : {0, 1, 2, 3}) {  // for the log, and for the pipes or not
    said_.clear();
    {
      const test::few_open_files few(static_cast<rlim_t>(next + left));
      launched.replace_node("w0", "it is lost");
      EXPECT_TRUE(poll_until(launched, runs_short));
    }
    EXPECT_TRUE(poll_until(launched, [&] { return find(launched, "w0")->state == process_state::running; }));
    EXPECT_EQ(next_descriptor(), next) << "none is lost";
  }
}

TEST_F(launch, no_child_outlives_a_launcher_that_is_killed) {
  const auto program = script("echo $$ >> pids; exec sleep 1000");
  const auto clusters = config();
  const pid_t launching = ::fork();
  if (launching == 0) {
    launcher launched(clusters, with(program));
    launched.start();
    while (true) launched.poll(1s);
  }
  const auto pids = [&] {
    const std::string text = folder_.read("pids");
    return std::count(text.begin(), text.end(), '\n');
  };
  ASSERT_TRUE(test::is_soon([&] { return pids() == 2; }));
  ::kill(launching, SIGKILL);
  ::waitpid(launching, nullptr, 0);
  std::istringstream text(folder_.read("pids"));
  for (pid_t pid = 0; text >> pid;) EXPECT_TRUE(test::is_soon([pid] { return !is_alive(pid); })) << pid;
}

// ---- other hosts

TEST_F(launch, reaches_other_hosts_through_ssh) {
  const auto config = parse_cluster_config(R"(
[cluster]
name = "far"
listen = "tcp://192.0.2.1:7700"
insecure = true
ssh = ["ssh", "-q"]
[model]
path = "none"
[[node]]
name = "head"
host = "192.0.2.1"
roles = ["router", "scheduler"]
[[node]]
name = "w0"
host = "192.0.2.2"
roles = ["worker"]
ssh = "me@192.0.2.2"
ssh_options = ["-p", "99"]
program = "/opt/it's/troupe"
config = "/etc/far.toml"
)",
                                           "/far.toml");
  const auto words = node_command(config, *config.find("w0"), "/here/troupe");
  ASSERT_EQ(words.size(), 6u);
  EXPECT_EQ(std::vector<std::string>(words.begin(), words.end() - 1),
            (std::vector<std::string>{"ssh", "-q", "-p", "99", "me@192.0.2.2"}));
  EXPECT_THAT(words.back(), StartsWith("exec sh -c '")) << "whatever shell the user there has";
  const std::string command = quoted_word("'/opt/it'\\''s/troupe' node '/etc/far.toml' --name w0 --listed");
  EXPECT_THAT(words.back(), HasSubstr(command.substr(1, command.size() - 2)));
  EXPECT_EQ(node_command(config, config.head(), "/here/troupe")[2], "192.0.2.1") << "without a target the host";
}

/// Stands in for ssh: ignores the host, and runs the command here with a shell, like sshd.
class launch_remote : public launch {
 protected:
  cluster_config remote(const std::string& program) const {
    const auto ssh = script("echo \"to $1\" >> ssh-calls; exec sh -c \"$2\"", "fake-ssh");
    return config("ssh = \"far-away\"\nprogram = \"" + program + "\"\n", "ssh = [\"" + ssh.string() + "\"]\n");
  }
};

TEST_F(launch_remote, a_remote_node_starts_dies_and_ends_like_a_local_one) {
  const auto program = script(
      "echo $$ > \"$4.pid\"; trap 'echo \"$4 ends\"; exit 0' TERM; echo \"$4 started\"; while :; do sleep 0.01; done");
  launcher launched(remote(program.string()), with(program));
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "state/logs/w0.log", "w0 started"));
  EXPECT_EQ(folder_.read("ssh-calls"), "to far-away\n");
  EXPECT_TRUE(find(launched, "w0")->is_remote);
  const pid_t node = std::stoi(folder_.read("w0.pid")), ssh = find(launched, "w0")->pid;
  EXPECT_NE(node, ssh);
  ::kill(node, SIGKILL);
  ASSERT_TRUE(poll_until_replaced(launched, "w0", ssh));
  EXPECT_EQ(find(launched, "w0")->last_end, "exit code 137") << "as a shell says it";
  const auto started_again = [&] {
    const std::string log = folder_.read("state/logs/w0.log");
    return log.rfind("w0 started") != log.find("w0 started");
  };
  ASSERT_TRUE(poll_until(launched, started_again));
  launched.stop();
  EXPECT_THAT(folder_.read("state/logs/w0.log"), HasSubstr("w0 ends")) << "SIGTERM, through the closed connection";
}

/// What ssh wants to know is then the reason why it fails, in the log.
TEST_F(launch_remote, ssh_has_no_terminal_to_ask_at) {
  const auto clusters = remote("program");
  script("(: </dev/tty) || exit 255; exec sleep 1000", "fake-ssh");
  launcher launched(clusters, with(script(serve)));
  launched.start();
  const pid_t ssh = find(launched, "w0")->pid;
  EXPECT_EQ(::getsid(ssh), ssh);
  ASSERT_TRUE(poll_until(launched, [&] { return !said_.empty(); }));
  EXPECT_THAT(said_.front(), HasSubstr("w0: ssh has no connection to its host (exit code 255)"));
  EXPECT_THAT(folder_.read("state/logs/w0.log"), HasSubstr("/dev/tty"));
}

TEST_F(launch_remote, a_remote_node_ends_with_its_connection) {
  const auto program = script("echo $$ > \"$4.pid\"; exec sleep 1000");
  auto clusters = remote(program.string());
  clusters.respawn = false;
  launcher launched(clusters, with(program));
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "w0.pid", "\n"));
  const pid_t node = std::stoi(folder_.read("w0.pid"));
  // Only ssh dies: its pipe closes when the launcher drops it.
  ::kill(find(launched, "w0")->pid, SIGKILL);
  EXPECT_TRUE(poll_until(launched, [&] { return !is_alive(node); }));
}

TEST_F(launch_remote, a_host_that_reboots_gets_its_node_back) {
  const auto program = script("echo $$ > \"$4.pid\"; echo \"$4 started\"; exec sleep 1000");
  const auto clusters = remote(program.string());
  // The first ten times the host cannot be reached.
  script("echo to >> ssh-calls; [ -e down ] && [ $(wc -l < ssh-calls) -le 11 ] && exit 255; exec sh -c \"$2\"",
         "fake-ssh");
  auto chosen = with(program);
  chosen.restart.longest_host_wait = 5ms;
  launcher launched(clusters, chosen);
  launched.start();
  ASSERT_TRUE(poll_until_written(launched, "state/logs/w0.log", "w0 started"));
  launched.note_works("w0");
  folder_.write("down", "");
  folder_.write("w0.pid", "");
  launched.replace_node("w0", "it is lost");
  ASSERT_TRUE(poll_until_written(launched, "w0.pid", "\n")) << "started again";
  EXPECT_EQ(folder_.read("ssh-calls").size(), 12 * std::string("to\n").size());
  EXPECT_NE(find(launched, "w0")->state, process_state::given_up);
  EXPECT_EQ(
      std::count_if(said_.begin(), said_.end(), [](auto& line) { return line.find("no connection") != line.npos; }), 1);
}

}  // namespace
}  // namespace troupe
