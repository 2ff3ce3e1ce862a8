// Processes die, hang and come back while 32 requests run: each still gets exactly what it would have got.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "base/file_descriptor.hpp"
#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

using std::chrono::seconds;

/// The process that `up` started for a node, from the moment that it is there; 0: none.
pid_t process_of(const std::filesystem::path& cluster, const std::string& node) {
  const std::string words = cluster.string() + '\0' + "--name" + '\0' + node + '\0';
  for (const auto& each : std::filesystem::directory_iterator("/proc")) {
    const std::string name = each.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        read_file(each.path() / "cmdline").find(words) != std::string::npos)
      return std::stoi(name);
  }
  return 0;
}

class survival : public testing::Test {
 protected:
  void start(const cluster_plan& plan) {
    cluster_ = std::make_unique<test_cluster>(site_, plan);
    cluster_->up();
    cluster_->load_adapters();
  }
  test_cluster& cluster() { return *cluster_; }
  const test_site& site() const { return site_; }

  /// Returns as soon as it is started again: the next process has not joined yet.
  void kill_and_await_next(const std::string& name) {
    const pid_t before = process_of(cluster_->file(), name);
    ASSERT_GT(before, 1);
    ::kill(before, SIGKILL);
    ASSERT_TRUE(wait_until([&] {
      const pid_t now = process_of(cluster_->file(), name);
      return now > 1 && now != before;
    }));
  }
  /// Started again, joined, and all replicas run.
  bool is_whole(int replicas) const { return cluster_->running_replicas() == replicas; }
  void expect_nothing_lost(load& traffic) {
    EXPECT_EQ(traffic.wrong_answers(), 0) << cluster_->log("head");
    EXPECT_TRUE(wait_until([&] { return cluster_->is_at_rest(); })) << cluster_->status();
  }

 private:
  test_site site_;
  std::unique_ptr<test_cluster> cluster_;
};

bool runs(load& traffic, std::size_t tokens = 1000) {
  const std::size_t before = traffic.traffic().tokens();
  return wait_until([&] { return traffic.traffic().tokens() >= before + tokens; });
}

TEST_F(survival, of_a_killed_worker_of_two_replicas) {
  start({.replicas = 2, .workers = {"w0", "w1"}});
  load traffic(site(), cluster().endpoint());
  ASSERT_TRUE(runs(traffic));
  cluster().kill("w0");
  expect_nothing_lost(traffic);
  EXPECT_LT(traffic.traffic().longest_silence(), seconds(5));
}

TEST_F(survival, of_the_only_worker) {
  start({});
  load traffic(site(), cluster().endpoint());
  ASSERT_TRUE(runs(traffic));
  cluster().kill("w0");
  expect_nothing_lost(traffic);
}

TEST_F(survival, of_each_stage) {
  start({.stages = 2, .workers = {"w0", "w1"}});
  load traffic(site(), cluster().endpoint(), 32, 600);
  for (const char* name : {"w0", "w1"}) {
    ASSERT_TRUE(runs(traffic));
    cluster().kill(name);
  }
  expect_nothing_lost(traffic);
}

/// Each of them is a rank: the others wait for it in the middle of a layer.
TEST_F(survival, of_each_rank) {
  start({.tensor = 2, .workers = {"w0", "w1"}});
  load traffic(site(), cluster().endpoint(), 32, 600);
  for (const char* name : {"w0", "w1"}) {
    ASSERT_TRUE(runs(traffic));
    cluster().kill(name);
  }
  expect_nothing_lost(traffic);
}

TEST_F(survival, of_a_rank_that_hangs) {
  start({.stages = 2, .tensor = 2, .workers = {"w0", "w1", "w2", "w3"}});
  load traffic(site(), cluster().endpoint(), 32, 300);
  ASSERT_TRUE(runs(traffic));
  cluster().kill("w1", SIGSTOP);
  expect_nothing_lost(traffic);
}

TEST_F(survival, of_two_workers_at_once) {
  start({.replicas = 2, .workers = {"w0", "w1"}});
  load traffic(site(), cluster().endpoint());
  ASSERT_TRUE(runs(traffic));
  cluster().kill("w0");
  cluster().kill("w1");
  expect_nothing_lost(traffic);
}

TEST_F(survival, of_a_worker_that_dies_while_it_starts) {
  start({.stages = 2, .workers = {"w0", "w1"}});
  load traffic(site(), cluster().endpoint());
  ASSERT_TRUE(runs(traffic));
  for (int i = 0; i < 4; ++i) ASSERT_NO_FATAL_FAILURE(kill_and_await_next("w1"));
  expect_nothing_lost(traffic);
}

TEST_F(survival, of_a_worker_whose_program_was_replaced_meanwhile) {
  const test_cluster cluster(site(), {});  // its file and commands, not its nodes
  const auto program = site().path("troupe");
  std::filesystem::copy_file(TROUPE_BINARY, program);
  process up({program.string(), "up", cluster.file().string()}, site().path("up"), site().environment());
  ASSERT_TRUE(wait_until([&] { return up.poll() || cluster.running_replicas() == 1; })) << up.error();
  std::filesystem::rename(site().write("newer", "another build"), program);
  const pid_t before = cluster.pid_of("w0");
  ASSERT_GT(before, 1);
  ::kill(before, SIGKILL);
  EXPECT_TRUE(wait_until([&] {
    const json now = cluster.node("w0");
    return !now.is_null() && now.at("pid") != before && cluster.running_replicas() == 1;
  })) << up.out();
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(), 0) << up.error();
}

/// By hand, so that nobody starts it again.
TEST_F(survival, a_stopped_worker_is_fenced_and_joins_anew_and_is_told_from_one_that_died) {
  start({.replicas = 0});
  process second = cluster().start_node("w9");
  ASSERT_TRUE(wait_until([&] { return is_whole(2); }));
  load traffic(site(), cluster().endpoint(), 32, 1000);
  ASSERT_TRUE(runs(traffic));
  second.signal(SIGSTOP);
  ASSERT_TRUE(wait_until([&] { return cluster().state_of("w9") == "lost"; }));
  ASSERT_TRUE(runs(traffic));
  second.signal(SIGCONT);
  EXPECT_TRUE(wait_until([&] { return is_whole(2); })) << second.out();
  EXPECT_NE(second.out().find("joining anew"), std::string::npos) << second.out();
  expect_nothing_lost(traffic);
  const auto losses = [&](const char* why) {
    return count_of(cluster().log("head"), std::string("w9 is lost: ") + why);
  };
  EXPECT_GE(losses("no sign of life, though its connection has not ended"), 1);
  second.signal(SIGKILL);
  EXPECT_TRUE(wait_until([&] { return losses("no sign of life\n") == 1; })) << cluster().log("head");
}

TEST_F(survival, of_a_full_queue_is_what_a_command_waits_for_and_says) {
  start({.in_cluster = "lost_after_ms = 60000", .in_scheduler = "max_sequences = 1\nmax_waiting = 1"});
  const auto submit = [&] { return cluster().start({"submit", "--tokens", "1,2,3", "--max-tokens", "4"}); };
  const pid_t worker = cluster().pid_of("w0");
  ASSERT_GT(worker, 1);
  ::kill(worker, SIGSTOP);
  process runs = submit(), waits = submit();
  EXPECT_TRUE(wait_until([&] {
    const json now = cluster().status();
    return !now.is_null() && now["replicas"][0]["running"].get<int>() + now["replicas"][0]["waiting"].get<int>() == 2;
  }));
  process refused = submit();
  EXPECT_TRUE(wait_until([&] { return refused.error().find("queue is full: ") != std::string::npos; }));
  ::kill(worker, SIGCONT);
  for (process* each : {&runs, &waits, &refused}) EXPECT_EQ(each->wait(), 0) << each->error();
}

/// One that `up` started is started again: a process that hangs is of no use.
TEST_F(survival, a_hanging_worker_is_started_again) {
  start({});
  load traffic(site(), cluster().endpoint());
  ASSERT_TRUE(runs(traffic));
  const pid_t before = cluster().pid_of("w0");
  cluster().kill("w0", SIGSTOP);
  ASSERT_TRUE(wait_until([&] { return is_whole(1) && cluster().pid_of("w0") != before; }));
  expect_nothing_lost(traffic);
}

/// Nobody answers `up` meanwhile, and it starts again what dies all the same.
TEST_F(survival, of_a_worker_while_the_head_is_stopped) {
  start({});
  const pid_t head = cluster().pid_of("head");
  ::kill(head, SIGSTOP);
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(kill_and_await_next("w0"));
  ::kill(head, SIGCONT);
  EXPECT_TRUE(wait_until([&] { return is_whole(1); }));
}

TEST_F(survival, is_none_of_a_head_that_is_given_up) {
  test_cluster lost(site(), {.in_cluster = "respawn = false"});
  process up = lost.start({"up", lost.file().string()});
  ASSERT_TRUE(wait_until([&] { return up.out().find("serves at") != std::string::npos; }));
  ::kill(lost.pid_of("head"), SIGKILL);
  EXPECT_EQ(up.wait(), 1) << "so that whoever started it starts it again";
  EXPECT_NE(up.error().find("head is given up (signal 9 (Killed))"), std::string::npos) << up.error();
  EXPECT_EQ(process_of(lost.file(), "w0"), 0) << "and it takes the others with it";
}

/// As somebody does while the cluster runs.
void rename_node(const test_cluster& cluster, const std::string& from, const std::string& to) {
  std::string text = read_file(cluster.file());
  const std::string before = "name = \"" + from + "\"";
  text.replace(text.find(before), before.size(), "name = \"" + to + "\"");
  cluster.site().write(cluster.file().filename().string(), text);
}

TEST_F(survival, is_none_of_a_head_that_was_taken_out_of_the_file) {
  const test_cluster lost(site(), {});
  process up = lost.start({"up", lost.file().string()});
  ASSERT_TRUE(wait_until([&] { return up.out().find("serves at") != std::string::npos; }));
  const pid_t head = lost.pid_of("head");
  ASSERT_GT(head, 1);
  rename_node(lost, "head", "h2");
  ::kill(head, SIGKILL);
  EXPECT_EQ(up.wait(), 1) << up.error();
  EXPECT_NE(up.error().find("head has ended (exit code 0): "), std::string::npos) << up.error();
  EXPECT_NE(up.error().find("no node is called head any more"), std::string::npos) << up.error();
  EXPECT_EQ(process_of(lost.file(), "w0"), 0) << "and it takes the others with it";
}

/// The head is stopped before it could hear of the worker.
TEST_F(survival, is_none_of_a_node_that_was_taken_out_of_the_file_before_it_has_joined) {
  const test_cluster cluster(site(), {});
  process up = cluster.start({"up", cluster.file().string()});
  pid_t head = 0, worker = 0;
  ASSERT_TRUE(wait_until([&] { return (head = process_of(cluster.file(), "head")) > 1; }));
  ::kill(head, SIGSTOP);
  ASSERT_TRUE(wait_until([&] { return (worker = process_of(cluster.file(), "w0")) > 1; }));
  rename_node(cluster, "w0", "w1");
  ::kill(worker, SIGKILL);
  EXPECT_EQ(up.wait(), 1) << up.error();
  EXPECT_NE(up.error().find("w0 does not start (exit code 0): "), std::string::npos) << up.error();
}

/// A disk that is full takes no line; a reader that stands still takes none, either, but would hold `up` up.
TEST_F(survival, goes_on_where_nobody_takes_what_up_says) {
  const test_cluster cluster(site(), {});
  const auto stuck = site().path("stuck");
  ASSERT_EQ(::mkfifo(stuck.c_str(), 0600), 0);
  const file_descriptor reader(::open(stuck.c_str(), O_RDWR | O_NONBLOCK));
  while (::write(reader.number(), "full\n", 5) == 5) {
  }
  for (const std::string& out : {std::string("/dev/full"), stuck.string()}) {
    process up({"/bin/sh", "-c", R"(exec "$0" up "$1" > "$2")", TROUPE_BINARY, cluster.file().string(), out},
               site().path("up"), site().environment());
    cluster.wait_for_service();
    const pid_t before = cluster.pid_of("w0");
    cluster.kill("w0");
    EXPECT_TRUE(wait_until([&] { return cluster.running_replicas() == 1 && cluster.pid_of("w0") != before; })) << out;
    up.signal(SIGTERM);
    EXPECT_EQ(up.wait(), 0) << up.error();
  }
}

/// Of a cluster with a node that is reached by a command which does something else.
cluster_plan with_stray_node(const std::string& command) {
  return {.in_cluster = "ssh = [\"sh\", \"-c\", \"" + command + "\"]",
          .in_training = "[[node]]\nname = \"far\"\nroles = [\"worker\"]\nssh = \"nobody@127.0.0.1\""};
}

TEST_F(survival, is_none_of_a_node_that_refuses_to_start_without_a_word) {
  const test_cluster cluster(site(), with_stray_node("exit 2"));
  process up = cluster.start({"up", cluster.file().string()});
  EXPECT_EQ(up.wait(), 2) << "so that whoever started it does not start it again";
  EXPECT_NE(up.error().find("far does not start (exit code 2): see "), std::string::npos) << up.error();
}

/// Such as one that is not in its host's copy of the file.
TEST_F(survival, is_none_of_a_remote_node_that_ends_before_it_has_joined) {
  const test_cluster cluster(site(), with_stray_node("echo it is not in the file"));
  process up = cluster.start({"up", cluster.file().string()});
  EXPECT_EQ(up.wait(), 1);
  EXPECT_NE(up.error().find("far does not start (exit code 0): it is not in the file: see "), std::string::npos)
      << up.error();
}

TEST_F(survival, is_none_of_a_node_that_says_in_its_log_why_it_ends) {
  const test_cluster cluster(site(), with_stray_node("echo 2026-11-27 20:31:41+0000 it has no memory; exit 2"));
  process up = cluster.start({"up", cluster.file().string()});
  EXPECT_EQ(up.wait(), 2);
  EXPECT_NE(up.error().find("(exit code 2): it has no memory: see "), std::string::npos) << up.error();
}

/// Its host has another file, with the memory that it has there.
TEST_F(survival, is_none_of_workers_that_turn_out_too_small) {
  const std::string node = "[[node]]\nname = \"small\"\nroles = [\"worker\"]\nthreads = 1\n";
  const std::string far = "ssh = \"nobody@127.0.0.1\"\nprogram = \"" TROUPE_BINARY "\"\nconfig = \"" +
                          site().path("far.toml").string() + "\"\n";
  const test_cluster cluster(
      site(), {.workers = {}, .in_cluster = R"(ssh = ["sh", "-c", "eval \"$1\""])", .in_training = node + far});
  std::string text = read_file(cluster.file());
  text.replace(text.find(far), far.size(), "memory = \"1KiB\"\n");
  site().write("far.toml", text);
  process up = cluster.start({"up", cluster.file().string()});
  EXPECT_EQ(up.wait(), 1) << up.error();
  EXPECT_NE(up.error().find("the model fits on no workers: "), std::string::npos) << up.error();
}

TEST_F(survival, begins_with_a_word_about_where_to_look_if_it_takes_its_time) {
  const test_cluster cluster(site(), with_stray_node("cat"));
  process up = cluster.start({"up", cluster.file().string()});
  const std::string said = " is starting: see " + (cluster.state() / "logs").string();
  EXPECT_TRUE(wait_until([&] { return up.error().find(said) != std::string::npos; })) << up.error();
  up.signal(SIGTERM);
  EXPECT_EQ(up.wait(), 143) << "it has not served: " << up.error();
}

TEST_F(survival, of_nodes_that_somebody_else_told_to_end) {
  start({.workers = {"w0"}});
  pid_t worker = 0;
  for (const char* name : {"w0", "head"}) {
    worker = cluster().pid_of("w0");
    const pid_t before = cluster().pid_of(name);
    ASSERT_EQ(::kill(before, SIGTERM), 0);
    EXPECT_TRUE(wait_until([&] { return cluster().pid_of(name) > 1 && cluster().pid_of(name) != before; })) << name;
    EXPECT_TRUE(wait_until([&] { return is_whole(1); })) << name;
  }
  EXPECT_EQ(cluster().pid_of("w0"), worker) << "it waits for the next head";
  for (const char* name : {"w0", "head"}) EXPECT_EQ(count_of(cluster().log(name), "told to end"), 1) << name;
}

/// Its requests go on elsewhere at once, as nobody has to find out that it is gone.
TEST_F(survival, of_workers_that_say_that_they_leave) {
  start({.replicas = 2, .workers = {"w0", "w1"}});
  pid_t before = 0;
  for (int times = 1; times <= 4; ++times) {
    const auto is_another = [&] { return cluster().pid_of("w0") > 1 && cluster().pid_of("w0") != before; };
    ASSERT_TRUE(wait_until([&] { return is_another() && is_whole(2); }));
    load traffic(site(), cluster().endpoint());
    ASSERT_TRUE(runs(traffic));
    before = cluster().pid_of("w0");
    cluster().kill("w0", SIGTERM);
    EXPECT_TRUE(wait_until([&] { return count_of(cluster().log("head"), "w0 is lost: it left") == times; }))
        << cluster().log("head");
    EXPECT_EQ(traffic.wrong_answers(), 0);
  }
}

TEST_F(survival, of_a_head_that_was_stopped_for_a_while) {
  start({.replicas = 2, .workers = {"w0", "w1"}});
  load traffic(site(), cluster().endpoint());
  ASSERT_TRUE(runs(traffic));
  const pid_t head = cluster().pid_of("head");
  ::kill(head, SIGSTOP);
  pass(seconds(3));  // nobody can be asked meanwhile
  ::kill(head, SIGCONT);
  expect_nothing_lost(traffic);
  EXPECT_EQ(cluster().log("head").find("is lost"), std::string::npos) << cluster().log("head");
}

/// The client asks the new head for the rest by itself.
TEST_F(survival, of_the_head_while_clients_stream) {
  start({.stages = 2, .workers = {"w0", "w1"}});
  std::vector<process> clients;
  std::vector<client_request> requests;
  for (int i = 0; i < 4; ++i) {
    client_request request;
    request.tokens = {i + 1, 2, 3};
    request.sampling.seed = static_cast<std::uint64_t>(i);
    request.sampling.temperature = 0.8;
    request.sampling.max_tokens = 2000;
    request.sampling.ignore_eos = true;
    requests.push_back(request);
    clients.push_back(
        cluster().start({"submit", "--tokens", std::to_string(i + 1) + ",2,3", "--seed", std::to_string(i),
                         "--temperature", "0.8", "--max-tokens", "2000", "--ignore-eos", "--json"}));
  }
  ASSERT_TRUE(wait_until([&] {
    const json now = cluster().status();
    return !now.is_null() && !now.at("replicas").empty() && now.at("replicas").at(0).at("tokens") > 500;
  }));
  cluster().kill("head");
  for (std::size_t i = 0; i < clients.size(); ++i) {
    ASSERT_EQ(clients[i].wait(seconds(60)), 0) << clients[i].error();
    EXPECT_EQ(json::parse(clients[i].out()).at("tokens").get<std::vector<token_id>>(), site().expected(requests[i]));
  }
}

TEST_F(survival, of_the_head_during_a_job_of_a_thousand_lines) {
  start({.stages = 2, .workers = {"w0", "w1"}});
  constexpr int lines = 1000;
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += json{{"tokens", {i % 250, i / 250, 7}}, {"ignore_eos", true}, {"seed", i}, {"custom_id", std::to_string(i)}}
                .dump() +
            "\n";
  site().write("in.jsonl", text);
  const auto out = site().path("out.jsonl");
  // What holds for all lines is the job's, and outlives the head like the lines.
  process client = cluster().start({"submit", "--file", site().path("in.jsonl").string(), "--out", out.string(),
                                    "--max-tokens", "40", "--temperature", "0.9"});
  const auto lines_there = [&] {
    const std::string now = read_file(out);
    return std::count(now.begin(), now.end(), '\n');
  };
  for (const int at : {100, 400}) {
    ASSERT_TRUE(wait_until([&] { return lines_there() >= at || client.poll(); })) << client.error();
    ASSERT_FALSE(client.poll()) << client.error();
    cluster().kill("head");
  }
  ASSERT_EQ(client.wait(seconds(60)), 0) << client.error();
  std::istringstream answers(read_file(out));
  int i = 0;
  for (std::string line; std::getline(answers, line); ++i) {
    const json answer = json::parse(line);
    client_request request;
    request.tokens = {i % 250, i / 250, 7};
    request.sampling.max_tokens = 40;
    request.sampling.ignore_eos = true;
    request.sampling.seed = static_cast<std::uint64_t>(i);
    request.sampling.temperature = 0.9;
    ASSERT_EQ(answer.at("custom_id"), std::to_string(i));
    if (i % 20 != 0) continue;
    ASSERT_EQ(answer.at("tokens").get<std::vector<token_id>>(), site().expected(request)) << line;
  }
  EXPECT_EQ(i, lines);
}

}  // namespace
}  // namespace troupe::test
