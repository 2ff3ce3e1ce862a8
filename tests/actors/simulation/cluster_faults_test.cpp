// Whatever becomes of a cluster's nodes and links: every request ends once, with the tokens that it would have had
// alone. TROUPE_SEEDS=1000 tries so many courses of events, TROUPE_SEED=17 one of them.
#include "tests/actors/simulation/course_of_events.hpp"

namespace troupe::test {
namespace {

constexpr char attending[] = "llama", with_states[] = "qwen3.5";

template <const char* Model>
class faults_of : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = std::make_unique<simulated_model>(Model);
    for (const std::uint64_t version : {1, 2}) {
      course_of_events undisturbed(*model_, {});
      undisturbed.cluster.pass(seconds(3));
      undisturbed.cluster.publish(version);
      for (std::size_t kind = 0; kind < kinds; ++kind) {
        undisturbed.ask(kind);
        ASSERT_TRUE(undisturbed.pass_until_over(seconds(30)));
        ASSERT_FALSE(undisturbed.all.back().listener->refused) << undisturbed.all.back().listener->refused->error;
        alone_[version][kind] = undisturbed.all.back().listener->answers;
      }
    }
    EXPECT_NE(alone_[1], alone_[2]) << "versions that cannot be told apart";
  }
  static void TearDownTestSuite() { model_.reset(); }

  static void expect_same_as_alone(const course_of_events::asked& each) {
    if (each.cancelled) return;
    const simulated_listener& told = *each.listener;
    ASSERT_TRUE(told.is_over());
    if (told.refused) return;
    const std::uint64_t version = !told.adapters.empty() && told.adapters.front() == "pricing@2" ? 2 : 1;
    for (const std::string& adapter : told.adapters) EXPECT_EQ(adapter, told.adapters.front());
    const auto& alone = alone_[version][each.kind];
    for (std::size_t i = 0; i < alone.size(); ++i) {
      EXPECT_EQ(told.answers[i].tokens, alone[i].tokens) << "answer " << i;
      EXPECT_EQ(told.answers[i].text, alone[i].text);
      EXPECT_EQ(told.answers[i].finish, alone[i].finish);
      EXPECT_EQ(told.answers[i].logprobs, alone[i].logprobs);
    }
  }
  static void expect_rest(course_of_events& course) {
    course.cluster.pass(seconds(2));  // the last reports
    for (const auto& [replica, figures] : course.cluster.replicas()) {
      EXPECT_EQ(figures.load.running, 0u) << replica.value;
      EXPECT_EQ(figures.load.waiting, 0u) << replica.value;
      EXPECT_EQ(figures.load.free_blocks, figures.load.blocks) << replica.value;
    }
    EXPECT_NE(course.cluster.status().find("\"running\":0,\"waiting_for_adapters\":0"), std::string::npos);
  }
  /// That were sent to sinks so far.
  static std::uint64_t tokens_of(const course_of_events& course) {
    std::uint64_t tokens = 0;
    for (const auto& [replica, figures] : course.cluster.replicas()) tokens += figures.meter.tokens;
    return tokens;
  }
  static void say_log(const course_of_events& course) {
    if (!HasFailure() || !std::getenv("TROUPE_SEED")) return;
    for (const std::string& line : course.cluster.log) fmt::print("{}\n", line);
    fmt::print("{}\n", course.cluster.status());
  }

  static void expect_to_change_nothing(std::uint64_t seeds) {
    for_seeds(seeds, [](std::uint64_t seed) {
      course_of_events course(*model_, options_of(seed));
      course.cluster.pass(seconds(course.cluster.random() % 4));
      course.be_disturbed();
      EXPECT_TRUE(course.pass_until_over(seconds(90)));
      std::size_t asked_after_faults = 0, answered_after_faults = 0;
      for (const auto& each : course.all) {
        SCOPED_TRACE(fmt::format("request {} of kind {}", &each - course.all.data() + 1, each.kind));
        expect_same_as_alone(each);
        const auto& refused = each.listener->refused;
        asked_after_faults += !each.cancelled && each.faults_before > 0;
        answered_after_faults += !each.cancelled && each.faults_before > 0 && !refused;
        if (!refused) continue;
        if (refused->is_unknown_adapter) {
          EXPECT_FALSE(each.listener->has_begun) << refused->error;
        } else if (refused->error.find("times in a row the replica was lost") != std::string::npos) {
          EXPECT_GE(course.faults - each.faults_before, 3u) << refused->error;
        } else {
          EXPECT_FALSE(each.listener->has_begun) << refused->error;
        }
      }
      EXPECT_TRUE(answered_after_faults > 0 || asked_after_faults < 5) << asked_after_faults;
      expect_rest(course);
      say_log(course);
    });
  }

  static inline std::unique_ptr<simulated_model> model_;
  static inline std::map<std::uint64_t, std::map<std::size_t, std::vector<told_answer>>> alone_;
};

using cluster_faults = faults_of<attending>;
using cluster_faults_with_states = faults_of<with_states>;

TEST_F(cluster_faults, change_no_answer_and_lose_no_request) {
  expect_to_change_nothing(10);
}

TEST_F(cluster_faults_with_states, change_no_answer_and_lose_no_request) {
  expect_to_change_nothing(6);
}

TEST_F(cluster_faults, leave_nothing_to_compute_when_all_clients_are_gone) {
  for_seeds(5, [](std::uint64_t seed) {
    course_of_events course(*model_, options_of(seed));
    course.cluster.pass(seconds(2));
    for (int time = 0; time < 8; ++time) {
      course.be_disturbed(20);
      for (std::size_t i = 0; i < course.all.size(); ++i) course.cancel(i);
      course.cluster.pass(milliseconds(200));  // until it is reported
      const std::uint64_t before = tokens_of(course);
      course.cluster.pass(seconds(2));
      EXPECT_EQ(tokens_of(course), before);
    }
    EXPECT_GT(tokens_of(course), 0u);
    say_log(course);
  });
}

TEST_F(cluster_faults, of_a_node_that_can_load_no_adapter_are_not_heard_of_while_another_replica_can) {
  for_seeds(4, [](std::uint64_t seed) {
    course_of_events course(*model_, {.seed = seed, .nodes = 4});
    constexpr std::size_t full = 1;  // each of the others takes its place in one of two replicas
    course.cluster.fill_disk(full, seconds(60));
    course.cluster.pass(seconds(3));
    for (int i = 0; i < 8; ++i) {
      for (std::size_t kind = 5; kind < kinds; kind += 6) course.ask(kind);  // all have the adapter
      course.cluster.pass(milliseconds(course.cluster.random() % 100));
    }
    EXPECT_TRUE(course.pass_until_over(seconds(20)));
    for (const auto& each : course.all) EXPECT_FALSE(each.listener->refused);
    for (std::size_t kind = 5; kind < kinds; kind += 6) course.ask(kind);
    course.cluster.pass(milliseconds(20 + course.cluster.random() % 30));
    for (std::size_t node = 0; node < 4; ++node)
      if (node != full) course.cluster.kill(node);  // so what has begun waits where it cannot go on
    EXPECT_TRUE(course.pass_until_over(seconds(90)));
    for (const auto& each : course.all) {
      SCOPED_TRACE(fmt::format("request {} of kind {}", &each - course.all.data() + 1, each.kind));
      EXPECT_FALSE(each.listener->refused && each.listener->has_begun) << each.listener->refused->error;
      expect_same_as_alone(each);
    }
    expect_rest(course);
    say_log(course);
  });
}

TEST_F(cluster_faults, come_again_by_the_same_seed) {
  course_of_events first(*model_, options_of(7)), again(*model_, options_of(7));
  first.be_disturbed();
  again.be_disturbed();
  EXPECT_EQ(first.cluster.log, again.cluster.log);
}

TEST_F(cluster_faults, that_a_request_causes_end_with_that_request) {
  for_seeds(10, [](std::uint64_t seed) {
    course_of_events course(*model_, options_of(seed));
    auto& random = course.cluster.random;
    course.cluster.deadly = deadly_token;
    course.cluster.pass(seconds(3));
    for (int i = 0; i < 12; ++i) {
      course.ask(random() % kinds, i == 4);
      course.cluster.pass(milliseconds(random() % 30));
    }
    EXPECT_TRUE(course.pass_until_over(seconds(90)));
    for (const auto& each : course.all) {
      SCOPED_TRACE(fmt::format("request {} of kind {}", &each - course.all.data() + 1, each.kind));
      EXPECT_EQ(each.listener->refused.has_value(), each.is_deadly);
      if (!each.is_deadly) expect_same_as_alone(each);
    }
    EXPECT_LE(course.cluster.deaths, 5u);  // a cached beginning is taken for progress, so it may be more than three
    expect_rest(course);
    say_log(course);
  });
}

}  // namespace
}  // namespace troupe::test
