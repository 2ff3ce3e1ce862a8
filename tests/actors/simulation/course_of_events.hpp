// What is asked of a simulated cluster, what happens to it meanwhile, and what comes of that.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/to_size.hpp"
#include "tests/actors/simulation/simulated_cluster.hpp"

namespace troupe::test {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr token_id deadly_token = 94;

/// All that a listener is told of one request.
struct told_answer {
  std::string text, finish;
  std::vector<token_id> tokens;
  std::vector<std::optional<float>> logprobs;  ///< of the prompt's tokens, then of these
  bool operator==(const told_answer&) const = default;
};

class simulated_listener final : public answer_listener {
 public:
  explicit simulated_listener(std::int32_t count) : answers(to_size(count)) {}

  void on_part(answer_part part) override {
    told_answer& answer = answers.at(to_size(part.index));
    ASSERT_TRUE(answer.finish.empty()) << "an answer goes on behind its end";
    ASSERT_FALSE(refused || is_over()) << "a request goes on behind its end";
    answer.text += part.text;
    answer.tokens.insert(answer.tokens.end(), part.tokens.begin(), part.tokens.end());
    for (const auto& tokens : {part.scored, part.details})
      for (const sampled_token& each : tokens) answer.logprobs.push_back(each.logprob);
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
inline begin_request request_of(std::size_t kind) {
  std::mt19937_64 chance(kind);
  begin_request made;
  engine_request& engine = made.engine;
  if (kind % 3 == 0)
    for (token_id i = 1; i <= 34; ++i) engine.sequence.prompt.push_back(i);  // a beginning that requests share
  for (std::size_t i = 0, count = 1 + chance() % 24; i < count; ++i)
    engine.sequence.prompt.push_back(static_cast<token_id>(1 + chance() % 90));
  engine.sequence.max_tokens = engine.sampling.max_tokens = 1 + static_cast<std::int64_t>(chance() % 40);
  engine.sequence.answers = kind % 4 == 1 ? 3 : 1;
  engine.sequence.tenant = tenant_id(kind % 2);
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
  if (kind % 8 == 3 || kind % 8 == 5) engine.sampling.logprobs = engine.sampling.prompt_logprobs = 0;
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
    if (is_deadly) prompt.insert(cluster.random() % 2 ? prompt.begin() : prompt.end(), deadly_token);
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
  void be_disturbed(int moments = 200) {
    auto& random = cluster.random;
    const std::uint64_t calm = 5 + random() % 60;        // moments between two faults
    const std::uint64_t longest = 50 + random() % 1000;  // moment
    for (int moment = 0; moment < moments; ++moment) {
      if (random() % 5 == 0) ask(random() % kinds);
      if (random() % 20 == 0 && !all.empty()) cancel(random() % all.size());
      if (random() % 40 == 0) cluster.publish(1 + random() % 2);
      if (random() % 120 == 0) cluster.unload();
      if (random() % calm == 0) cause_fault();
      cluster.pass(milliseconds(1 + random() % (random() % 4 ? 10 : longest)));
    }
  }
  void cause_fault() {
    auto& random = cluster.random;
    ++faults;
    const std::size_t node = random() % nodes, other = random() % nodes;
    const duration time = milliseconds(50 + random() % (random() % 8 == 0 ? 15'000 : 4000));
    switch (random() % 10) {
      case 0:
        if (random() % 4 == 0 && left > 2) {
          --left;
          return cluster.kill_for_good(node);
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
      case 8:
        return cluster.fill_disk(node, time);
      case 7:
        if (nodes == 8) return;
        ++left;
        nodes = cluster.add_node();
        return;
      default:
        return cluster.drain(node);
    }
  }

  simulated_cluster cluster;
  std::vector<asked> all;
  std::size_t nodes = 5;  ///< so far
  std::size_t left = 5;   ///< that were not lost for good, at least
  std::size_t faults = 0;
};

/// Runs so many seeds of a test, and says which one fails.
template <class Run>
void for_seeds(std::uint64_t count, Run run) {
  const char *one = std::getenv("TROUPE_SEED"), *many = std::getenv("TROUPE_SEEDS");
  const std::uint64_t first = one ? std::strtoull(one, nullptr, 10) : 1;
  const std::uint64_t last = one ? first : many ? std::strtoull(many, nullptr, 10) : count;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(fmt::format("TROUPE_SEED={}", seed));
    run(seed);
    if (testing::Test::HasFailure()) return;
  }
}
inline simulated_cluster::options options_of(std::uint64_t seed) {
  return {.seed = seed,
          .nodes = 5,
          .stages = seed % 4 == 0 ? 1 : 2,
          .blocks = seed % 3 == 0 ? 10 : 40,
          .lookup_tokens = seed % 2 ? 3 : 0,
          .max_batch_tokens = seed % 5 == 0 ? 16 : 64};
}

}  // namespace troupe::test
