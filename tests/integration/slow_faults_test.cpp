// Faults in a row, of any kind and by chance, under a load that never stops. TROUPE_FAULTS says how many (20).
#include <signal.h>

#include <cstdlib>
#include <iostream>
#include <list>
#include <random>

#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

using std::chrono::milliseconds, std::chrono::seconds;

int number_from(const char* variable, int otherwise) {
  const char* said = std::getenv(variable);
  return said ? std::atoi(said) : otherwise;
}

/// Requests in groups; as one group ends, it is checked and another begins.
class endless_load {
 public:
  endless_load(const test_site& site, const std::string& endpoint) : site_(site), endpoint_(endpoint) {}

  void keep_going() {
    for (auto& each : groups_)
      if (!each) {
        each = std::make_unique<load>(site_, endpoint_, 8, 400);
      } else if (each->traffic().finished()) {
        wrong_ += each->wrong_answers();
        ++done_;
        each.reset();
      }
  }
  int wrong_at_the_end() {
    for (auto& each : groups_)
      if (each) wrong_ += each->wrong_answers(), ++done_;
    return wrong_;
  }
  int groups_done() const { return done_; }

 private:
  const test_site& site_;
  std::string endpoint_;
  std::array<std::unique_ptr<load>, 4> groups_;
  int wrong_ = 0, done_ = 0;
};

class slow_faults : public testing::Test {
 protected:
  void keep_load_for(endless_load& work, milliseconds time) {
    (void)wait_until([&] { return work.keep_going(), false; }, time);
  }
  void one_fault(test_cluster& cluster, std::mt19937& random) {
    const json nodes = cluster.status();
    if (nodes.is_null()) return;
    std::vector<pid_t> workers;
    pid_t head = 0;
    for (const json& node : nodes.at("nodes")) {
      const auto pid = node.at("pid").get<pid_t>();
      if (node.at("name") == "head")
        head = pid;
      else if (node.at("state") == "alive")
        workers.push_back(pid);
    }
    std::shuffle(workers.begin(), workers.end(), random);
    const auto signal_some = [&](std::size_t count, int signal) {
      for (std::size_t i = 0; i < std::min(count, workers.size()); ++i) ::kill(workers[i], signal);
    };
    switch (random() % 8) {
      case 0:
        return signal_some(2, SIGKILL);
      case 1:
        return signal_some(1, SIGSTOP);  // up ends it, once the head has given it up
      case 2:
        ::kill(head, SIGSTOP);
        (void)wait_until([] { return false; }, milliseconds(random() % 2500));
        ::kill(head, SIGCONT);
        return;
      case 3:
        return signal_some(workers.size(), SIGKILL);
      default:
        return signal_some(1, SIGKILL);
    }
  }
  void survive(const cluster_plan& plan);
};

/// Two replicas, whatever their shape.
void slow_faults::survive(const cluster_plan& plan) {
  const int faults = number_from("TROUPE_FAULTS", 20);
  const test_site site;
  test_cluster cluster(site, plan);
  cluster.up();
  cluster.load_adapters();
  endless_load work(site, cluster.endpoint());
  std::mt19937 random(static_cast<unsigned>(number_from("TROUPE_SEED", 1)));
  const pid_t head = cluster.pid_of("head");
  long memory_before = 0;
  std::size_t files_before = 0;
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < faults && !HasFailure(); ++i) {
    keep_load_for(work, milliseconds(300 + random() % 700));
    one_fault(cluster, random);
    if (random() % 4 != 0) {
      EXPECT_TRUE(wait_until([&] { return work.keep_going(), cluster.running_replicas() == 2; }, seconds(30)))
          << cluster.status() << cluster.log("head");
    }
    if (i != faults / 5) continue;
    memory_before = status_number(head, "VmRSS");
    files_before = open_files(head);
  }
  EXPECT_EQ(work.wrong_at_the_end(), 0) << cluster.log("head");
  EXPECT_TRUE(wait_until([&] { return cluster.running_replicas() == 2 && cluster.is_at_rest(); }, seconds(30)))
      << cluster.status();
  const auto took = std::chrono::duration_cast<seconds>(std::chrono::steady_clock::now() - begun).count();
  const long memory = status_number(head, "VmRSS");
  const std::size_t files = open_files(head);
  std::cout << faults << " faults in " << took << " s, " << work.groups_done()
            << " groups of requests; the head's memory " << memory_before << " kB, then " << memory
            << " kB; its open files " << files_before << ", then " << files << std::endl;
  EXPECT_LT(memory, memory_before + (32 << 10));
  EXPECT_LE(files, files_before + 8);
  EXPECT_EQ(cluster.pid_of("head"), head);
  EXPECT_EQ(cluster.down(), 0);
}

TEST_F(slow_faults, of_workers_lose_nothing_and_leak_nothing) {
  survive({.replicas = 2, .stages = 2, .workers = {"w0", "w1", "w2", "w3"}});
}

TEST_F(slow_faults, of_ranks_lose_nothing_and_leak_nothing) {
  survive({.replicas = 2, .tensor = 2, .workers = {"w0", "w1", "w2", "w3"}});
}

TEST_F(slow_faults, of_the_head_leave_every_line_of_a_job_once) {
  const int faults = std::max(number_from("TROUPE_FAULTS", 20) / 10, 3);
  const test_site site;
  test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}});
  cluster.up();
  const int lines = faults * 300;
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += json{{"tokens", {i % 250, i / 250, 7}},
                 {"max_tokens", 100},
                 {"ignore_eos", true},
                 {"custom_id", std::to_string(i)}}
                .dump() +
            "\n";
  site.write("in.jsonl", text);
  const words submit{"submit", "--file", site.path("in.jsonl").string(), "--out", site.path("out.jsonl").string()};
  process client = cluster.start(submit);
  const auto lines_there = [&] {
    const std::string now = read_file(site.path("out.jsonl"));
    return std::count(now.begin(), now.end(), '\n');
  };
  for (int i = 0; i < faults; ++i) {
    ASSERT_TRUE(wait_until([&] { return lines_there() > lines / (faults + 1) * (i + 1); }, seconds(60))) << i;
    // One that died a moment ago is started again after a pause.
    pid_t head = 0;
    ASSERT_TRUE(wait_until([&] { return (head = cluster.pid_of("head")) > 1; }, seconds(60))) << i;
    ::kill(head, SIGKILL);
    if (i % 3 == 2) {  // the client, too: the same command collects the rest
      client.signal(SIGKILL);
      client.wait();
      cluster.wait_for_service();
      client = cluster.start(submit);
    }
  }
  ASSERT_EQ(client.wait(seconds(120)), 0) << client.error();
  std::istringstream answers(read_file(site.path("out.jsonl")));
  int i = 0;
  for (std::string line; std::getline(answers, line); ++i)
    ASSERT_EQ(json::parse(line).at("custom_id"), std::to_string(i)) << line;
  EXPECT_EQ(i, lines);
}

}  // namespace
}  // namespace troupe::test
