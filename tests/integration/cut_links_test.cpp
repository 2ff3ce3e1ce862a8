// Hosts of their own for head and workers (network namespaces), and links between them that are cut.
#include <unistd.h>

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

using std::chrono::seconds;

bool call(const std::string& command) {
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

/// Head and client stay in this namespace, at 10.77.N.1; the worker is at .2 behind a link that can be cut.
class two_hosts {
 public:
  two_hosts() {
    made_ = ::geteuid() == 0 && call("ip netns add " + name_) &&
            call("ip link add " + near_ + " type veth peer name " + far_) &&
            call("ip link set " + far_ + " netns " + name_) && call("ip addr add " + head() + "/24 dev " + near_) &&
            call("ip link set " + near_ + " up") &&
            call("ip -n " + name_ + " addr add " + worker() + "/24 dev " + far_) &&
            call("ip -n " + name_ + " link set " + far_ + " up") && call("ip -n " + name_ + " link set lo up");
  }
  ~two_hosts() {
    call("ip link del " + near_);
    call("ip netns del " + name_);
  }
  bool are_there() const { return made_; }
  std::string head() const { return "10.77." + std::to_string(number_) + ".1"; }
  std::string worker() const { return "10.77." + std::to_string(number_) + ".2"; }
  const std::string& name() const { return name_; }
  void cut() { ASSERT_TRUE(call("ip link set " + near_ + " down")); }
  void mend() { ASSERT_TRUE(call("ip link set " + near_ + " up")); }

 private:
  int number_ = ::getpid() % 200 + 20;
  std::string id_ = std::to_string(::getpid());
  std::string name_ = "troupe" + id_, near_ = "tn" + id_, far_ = "tf" + id_;
  bool made_ = false;
};

class cut_links : public testing::Test {
 protected:
  void SetUp() override {
    if (!hosts_.are_there()) GTEST_SKIP() << "network namespaces need root and the ip command";
  }
  /// Three nodes: the head and w0 here, w1 on the other host.
  void start(int replicas, int stages, const std::string& in_cluster = "") {
    cluster_ = std::make_unique<test_cluster>(
        site_, cluster_plan{.replicas = replicas,
                            .stages = stages,
                            .workers = {},
                            .in_cluster = "insecure = true\nassemble_seconds = 20\n" + in_cluster,
                            .listen = "tcp://" + hosts_.head() + ":" + std::to_string(free_port())});
    std::ofstream file(cluster_->file(), std::ios::app);
    file << "[[node]]\nname = \"w0\"\nroles = [\"worker\"]\nthreads = 1\nhost = \"" << hosts_.head()
         << "\"\nlisten = \"tcp://" << hosts_.head() << ":0\"\n"
         << "[[node]]\nname = \"w1\"\nroles = [\"worker\"]\nthreads = 1\nhost = \"" << hosts_.worker()
         << "\"\nlisten = \"tcp://" << hosts_.worker() << ":0\"\n";
    file.close();
    nodes_.push_back(cluster_->start_node("head"));
    nodes_.push_back(cluster_->start_node("w0"));
    words far{"ip", "netns", "exec", hosts_.name(), TROUPE_BINARY, "node", cluster_->file().string(), "--name", "w1"};
    nodes_.push_back({far, site_.path("far"), site_.environment()});
    ASSERT_TRUE(wait_until([&] { return cluster_->running_replicas() == replicas; })) << nodes_[2].out();
    cluster_->load_adapters();
  }

  test_site site_;
  two_hosts hosts_;
  std::unique_ptr<test_cluster> cluster_;
  std::vector<process> nodes_;
};

TEST_F(cut_links, between_replicas_and_head) {
  start(2, 1);
  load traffic(site_, cluster_->endpoint(), 32, 600);
  ASSERT_TRUE(wait_until([&] { return traffic.traffic().tokens() > 1000; }));
  hosts_.cut();
  EXPECT_TRUE(wait_until([&] { return cluster_->state_of("w1") == "lost"; }));
  EXPECT_EQ(traffic.wrong_answers(), 0);
  hosts_.mend();
  EXPECT_TRUE(wait_until([&] { return cluster_->running_replicas() == 2; })) << nodes_[2].out();
  load again(site_, cluster_->endpoint(), 32, 150);
  EXPECT_EQ(again.wrong_answers(), 0);
}

TEST_F(cut_links, between_two_stages_for_three_seconds) {
  start(1, 2);
  load traffic(site_, cluster_->endpoint(), 32, 600);
  ASSERT_TRUE(wait_until([&] { return traffic.traffic().tokens() > 1000; }));
  hosts_.cut();
  pass(seconds(3));
  hosts_.mend();
  EXPECT_EQ(traffic.wrong_answers(), 0) << nodes_[0].out() << nodes_[2].out();
  EXPECT_TRUE(wait_until([&] { return cluster_->is_at_rest(); })) << cluster_->status();
}

/// Too short to be noticed by anybody, also where a busy machine makes it longer.
TEST_F(cut_links, for_half_a_second) {
  start(1, 2, "lost_after_ms = 5000");
  load traffic(site_, cluster_->endpoint(), 32, 600);
  ASSERT_TRUE(wait_until([&] { return traffic.traffic().tokens() > 1000; }));
  hosts_.cut();
  pass(std::chrono::milliseconds(500));
  hosts_.mend();
  EXPECT_EQ(traffic.wrong_answers(), 0);
  EXPECT_EQ(nodes_[0].out().find("is lost"), std::string::npos) << nodes_[0].out();
}

}  // namespace
}  // namespace troupe::test
