// Nodes that come to a loaded cluster, and go.
#include <signal.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

TEST(joining, a_newcomer_takes_work_and_drains_without_a_loss) {
  const test_site site;
  test_cluster cluster(site, {.replicas = 0, .workers = {"w0", "w1"}});
  cluster.up();
  cluster.load_adapters();
  ASSERT_TRUE(wait_until([&] { return cluster.running_replicas() == 2; }));
  load before(site, cluster.endpoint(), 32, 600);
  process newcomer = cluster.start_node("w3");
  const auto works = [&] {
    const json now = cluster.status();
    if (now.is_null()) return false;
    for (const json& each : now.at("replicas"))
      if (each.at("stages").at(0).at("workers").at(0) == "w3") return each.value("tokens", 0) > 0;
    return false;
  };
  load after(site, cluster.endpoint(), 32, 600);
  std::vector<std::unique_ptr<load>> more;
  EXPECT_TRUE(wait_until([&] {
    if (more.size() < 20) more.push_back(std::make_unique<load>(site, cluster.endpoint(), 4, 100));
    return works();
  })) << cluster.status();
  cluster.run({"drain", "w3"});
  EXPECT_EQ(newcomer.wait(), 0) << newcomer.out();
  EXPECT_EQ(before.wrong_answers(), 0);
  EXPECT_EQ(after.wrong_answers(), 0);
  for (const auto& each : more) EXPECT_EQ(each->wrong_answers(), 0);
}

TEST(joining, a_spare_takes_the_place_of_a_drained_stage) {
  const test_site site;
  test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}});
  cluster.up();
  cluster.load_adapters();
  process spare = cluster.start_node("w3");
  ASSERT_TRUE(wait_until([&] { return !cluster.node("w3").is_null(); }));
  load traffic(site, cluster.endpoint());
  ASSERT_TRUE(wait_until([&] { return traffic.traffic().tokens() > 1000; }));
  cluster.run({"drain", "w0"});
  EXPECT_EQ(traffic.wrong_answers(), 0);
  EXPECT_EQ(cluster.state_of("w0"), "left");
  EXPECT_EQ(cluster.node("w3").at("layers"), "0-1");
}

TEST(joining, a_worker_may_die_while_another_is_drained) {
  const test_site site;
  test_cluster cluster(site, {.replicas = 0, .workers = {"w0", "w1"}});
  cluster.up();
  cluster.load_adapters();
  process third = cluster.start_node("w3");
  ASSERT_TRUE(wait_until([&] { return cluster.running_replicas() == 3; }));
  load traffic(site, cluster.endpoint());
  ASSERT_TRUE(wait_until([&] { return traffic.traffic().tokens() > 1000; }));
  const pid_t dying = cluster.pid_of("w0");
  process drain = cluster.start({"drain", "w3"});
  ::kill(dying, SIGKILL);
  EXPECT_EQ(drain.wait(), 0) << drain.error();
  EXPECT_EQ(third.wait(), 0) << third.out();
  EXPECT_EQ(traffic.wrong_answers(), 0);
}

TEST(joining, a_worker_may_be_drained_as_soon_as_up_says_that_the_cluster_serves) {
  const test_site site;
  test_cluster cluster(site, {.replicas = 2, .workers = {"w0", "w1"}});
  cluster.up();
  ASSERT_TRUE(cluster.up_has_seen_it_serve());
  EXPECT_EQ(cluster.running_replicas(), 2);
  cluster.run({"drain", "w0"});
}

TEST(joining, nobody_is_drained_whom_nobody_can_replace) {
  const test_site site;
  test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}});
  cluster.up();
  for (const char* name : {"w0", "head", "nobody"}) {
    process refused = cluster.start({"drain", name});
    EXPECT_EQ(refused.wait(), 2) << name;
    EXPECT_EQ(refused.error().rfind("troupe: ", 0), 0u) << refused.error();
  }
  EXPECT_EQ(cluster.running_replicas(), 1);
}

/// With a worker on a host from which it does not reach the head, as behind a firewall.
class a_cluster_without_its_worker : public testing::Test {
 protected:
  a_cluster_without_its_worker() {
    std::filesystem::permissions(ssh_, std::filesystem::perms::owner_all);
    std::ofstream(cluster_.file(), std::ios::app) << "[[node]]\nname = \"w0\"\nroles = [\"worker\"]\nssh = \"there\"\n";
  }
  std::string logs() const { return (cluster_.state() / "logs").string(); }

  const test_site site_;
  const std::filesystem::path ssh_ = site_.write("ssh", "#!/bin/sh\necho 'HEAD:1 does not answer'\nexec cat\n");
  const test_cluster cluster_{
      site_, {.workers = {}, .in_cluster = "assemble_seconds = 1\nssh = [\"" + ssh_.string() + "\"]\n"}};
  const std::string said_ = "w0 has not joined yet: HEAD:1 does not answer: see " + logs() + "/w0.log\n";
};

TEST_F(a_cluster_without_its_worker, says_for_whom_it_waits) {
  process up = cluster_.start({"up", cluster_.file().string()});
  EXPECT_TRUE(wait_until([&] { return up.out().find(said_) != std::string::npos; })) << up.out() << up.error();
  EXPECT_TRUE(wait_until([&] { return cluster_.log("head").find("waits for w0") != std::string::npos; }));
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(), 128 + SIGINT) << "it has not begun";
}

TEST_F(a_cluster_without_its_worker, says_so_too_where_a_daemon_holds_it_up) {
  process up = cluster_.start({"up", cluster_.file().string(), "--detach"});
  EXPECT_TRUE(wait_until([&] { return up.error().find("troupe: " + said_) != std::string::npos; })) << up.error();
  up.signal(SIGINT);
  EXPECT_EQ(up.wait(), 128 + SIGINT);
}

}  // namespace
}  // namespace troupe::test
