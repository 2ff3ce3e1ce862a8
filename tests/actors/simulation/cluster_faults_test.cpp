// Whatever becomes of a cluster's nodes and links: every request ends once, with the tokens that it would have had
// alone. TROUPE_SEEDS=1000 tries so many courses of events, TROUPE_SEED=17 one of them.
#include <fmt/format.h>

#include <cstdlib>

#include "tests/actors/simulation/simulated_cluster.hpp"

namespace troupe::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr token_id deadly_token = 94;

/// All that a listener is told of one request.
struct told_answer {
  std::string text, finish;
  std::vector<token_id> tokens;
  bool operator==(const told_answer&) const = default;
};

class simulated_listener final : public answer_listener {
 public:
  explicit simulated_listener(std::int32_t count) : answers(static_cast<std::size_t>(count)) {}

  void on_part(answer_part part) override {
    told_answer& answer = answers.at(static_cast<std::size_t>(part.index));
    ASSERT_TRUE(answer.finish.empty()) << "an answer goes on behind its end";
    ASSERT_FALSE(refused || is_over()) << "a request goes on behind its end";
    answer.text += part.text;
    answer.tokens.insert(answer.tokens.end(), part.tokens.begin(), part.tokens.end());
    has_begun = true;
    if (!part.adapter.empty()) adapters.push_back(part.adapter);
    if (part.end) answer.finish = part.end->finish;
  }
  void on_refused(const request_refused& why) override {
    ASSERT_FALSE(refused || is_over()) << "a request that has ended is refused";
    refused = why;
  }
  bool is_over() const {
    return refused || std::all_of(answers.begin(), answers.end(), [](auto& each) { return !each.finish.empty(); });
  }

  std::vector<told_answer> answers;
  std::vector<std::string> adapters;
  std::optional<request_refused> refused;
  bool has_begun = false;
};

/// Requests of all kinds, the same in every simulation.
begin_request request_of(std::size_t kind) {
  std::mt19937_64 chance(kind);
  begin_request made;
  engine_request& engine = made.engine;
  if (kind % 3 == 0)
    for (token_id i = 1; i <= 34; ++i) engine.sequence.prompt.push_back(i);  // a beginning that requests share
  for (std::size_t i = 0, count = 1 + chance() % 24; i < count; ++i)
    engine.sequence.prompt.push_back(static_cast<token_id>(1 + chance() % 90));
  engine.sequence.max_tokens = engine.sampling.max_tokens = 1 + static_cast<std::int64_t>(chance() % 40);
  engine.sequence.answers = kind % 4 == 1 ? 3 : 1;
  engine.sequence.priority = kind % 5 == 2 ? request_priority::batch : request_priority::interactive;
  engine.sampling.temperature = kind % 2 ? 0.8 : 0;
  engine.sampling.seed = kind;
  engine.sampling.logit_bias = {{deadly_token, -100.f}};
  if (kind % 7 < 3) engine.sampling.stop = {"A", "b", "z"};
  made.keep_stop = kind % 7 == 1;
  if (kind % 7 == 2) {
    for (token_id token = 0; token < 90; token += 2) engine.sampling.stop_tokens.push_back(token);
    engine.sampling.min_tokens = engine.sampling.max_tokens / 2;
  }
  engine.end_tokens = {95};
  if (kind % 6 == 5) made.adapter = "pricing";
  return made;
}
constexpr std::size_t kinds = 30;

/// One cluster, what is asked of it, and what comes of that.
class course_of_events {
 public:
  struct asked {
    std::size_t kind = 0;
    std::shared_ptr<simulated_listener> listener;
    bool cancelled = false, is_deadly = false;
    std::size_t faults_before = 0;
  };

  course_of_events(const simulated_model& model, const simulated_cluster::options& options) : cluster(model, options) {}

  void ask(std::size_t kind, bool is_deadly = false) {
    begin_request request = request_of(kind);
    auto& prompt = request.engine.sequence.prompt;
    if (is_deadly) prompt.insert(prompt.begin(), deadly_token);
    request.id = request_id(all.size() + 1);
    const auto listener = std::make_shared<simulated_listener>(request.engine.sequence.answers);
    request.listener = listener;
    all.push_back({kind, listener, false, is_deadly, faults});
    cluster.ask(std::move(request));
  }
  void cancel(std::size_t which) {
    if (all[which].listener->is_over()) return;
    all[which].cancelled = true;
    cluster.cancel(request_id(which + 1));
  }
  bool is_over() const {
    return std::all_of(all.begin(), all.end(), [](auto& each) { return each.cancelled || each.listener->is_over(); });
  }
  bool pass_until_over(duration longest) {
    for (const instant end = cluster.now() + longest; !is_over() && cluster.now() < end;)
      cluster.pass(milliseconds(20));
    return is_over();
  }

  /// Requests come and some go, while one fault follows the other.
  void be_disturbed() {
    auto& random = cluster.random;
    cluster.pass(seconds(random() % 4));
    const std::uint64_t calm = 5 + random() % 60;        // moments between two faults
    const std::uint64_t longest = 50 + random() % 1000;  // moment
    for (int moment = 0; moment < 200; ++moment) {
      if (random() % 5 == 0) ask(random() % kinds);
      if (random() % 20 == 0 && !all.empty()) cancel(random() % all.size());
      if (random() % 40 == 0) cluster.publish(1 + random() % 2);
      if (random() % calm == 0) cause_fault();
      cluster.pass(milliseconds(1 + random() % (random() % 4 ? 10 : longest)));
    }
  }
  void cause_fault() {
    auto& random = cluster.random;
    ++faults;
    const std::size_t left = nodes - lost_for_good, node = random() % left, other = random() % left;
    const duration time = milliseconds(50 + random() % (random() % 8 == 0 ? 15'000 : 4000));
    switch (random() % 8) {
      case 0:
        if (random() % 4 == 0 && lost_for_good + 2 < nodes) {
          ++lost_for_good;
          return cluster.kill_for_good(nodes - lost_for_good);
        }
        [[fallthrough]];
      case 1:
        return cluster.kill(node);
      case 2:
        return cluster.stop(node, time);
      case 3:
        return cluster.cut_from_head(node, time);
      case 4:
      case 5:
        return cluster.cut_between(node, other, time);
      case 6:
        return cluster.leave(node);
      default:
        return cluster.drain(node);
    }
  }

  simulated_cluster cluster;
  std::vector<asked> all;
  std::size_t nodes = 5, lost_for_good = 0, faults = 0;
};

class cluster_faults : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = std::make_unique<simulated_model>();
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
  /// Runs so many seeds of a test, and says which one fails.
  template <class Run>
  static void for_seeds(std::uint64_t count, Run run) {
    const char *one = std::getenv("TROUPE_SEED"), *many = std::getenv("TROUPE_SEEDS");
    const std::uint64_t first = one ? std::strtoull(one, nullptr, 10) : 1;
    const std::uint64_t last = one ? first : many ? std::strtoull(many, nullptr, 10) : count;
    for (std::uint64_t seed = first; seed <= last; ++seed) {
      SCOPED_TRACE(fmt::format("TROUPE_SEED={}", seed));
      run(seed);
      if (HasFailure()) return;
    }
  }
  static simulated_cluster::options options_of(std::uint64_t seed) {
    return {.seed = seed,
            .nodes = 5,
            .stages = seed % 4 == 0 ? 1 : 2,
            .blocks = seed % 3 == 0 ? 10 : 40,
            .lookup_tokens = seed % 2 ? 3 : 0,
            .max_batch_tokens = seed % 5 == 0 ? 16 : 64};
  }
  static void say_log(const course_of_events& course) {
    if (!HasFailure() || !std::getenv("TROUPE_SEED")) return;
    for (const std::string& line : course.cluster.log) fmt::print("{}\n", line);
    fmt::print("{}\n", course.cluster.status());
  }

  static inline std::unique_ptr<simulated_model> model_;
  static inline std::map<std::uint64_t, std::map<std::size_t, std::vector<told_answer>>> alone_;
};

TEST_F(cluster_faults, change_no_answer_and_lose_no_request) {
  for_seeds(10, [](std::uint64_t seed) {
    course_of_events course(*model_, options_of(seed));
    course.be_disturbed();
    EXPECT_TRUE(course.pass_until_over(seconds(90)));
    for (const auto& each : course.all) {
      SCOPED_TRACE(fmt::format("request {} of kind {}", &each - course.all.data() + 1, each.kind));
      expect_same_as_alone(each);
      const auto& refused = each.listener->refused;
      if (!refused) continue;
      if (refused->cause == refusal_cause::bad_input) {
        EXPECT_GE(course.faults - each.faults_before, 3u) << refused->error;
      } else {
        EXPECT_FALSE(each.listener->has_begun) << refused->error;
      }
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
    EXPECT_GE(course.cluster.deaths, 3u);
    EXPECT_LE(course.cluster.deaths, 3 * course.all[4].listener->answers.size());
    expect_rest(course);
    say_log(course);
  });
}

}  // namespace
}  // namespace troupe::test
