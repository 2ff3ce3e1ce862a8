// Promise 1 between processes: whoever holds which layers, the tokens are the same.
#include <gtest/gtest.h>

#include "tests/integration/cluster.hpp"

namespace troupe::test {
namespace {

struct shape_case {
  const char* name;
  cluster_plan plan;
};

void PrintTo(const shape_case& each, std::ostream* to) {
  *to << each.name;
}

class same_tokens_over_processes : public testing::TestWithParam<shape_case> {};

TEST_P(same_tokens_over_processes, as_in_one) {
  const test_site site;
  test_cluster cluster(site, GetParam().plan);
  cluster.up();
  cluster.load_adapters();
  load traffic(site, cluster.endpoint(), 40, 200);
  EXPECT_EQ(traffic.wrong_answers(), 0);
  EXPECT_TRUE(wait_until([&] { return cluster.is_at_rest(); })) << cluster.status();
  EXPECT_EQ(cluster.down(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    shapes, same_tokens_over_processes,
    testing::Values(
        shape_case{"one_worker", {}}, shape_case{"head_that_works", {.workers = {}, .head_works = true}},
        shape_case{"two_stages", {.stages = 2, .workers = {"w0", "w1"}}},
        shape_case{"head_holds_a_stage", {.stages = 2, .workers = {"w0"}, .head_works = true}},
        shape_case{"three_stages", {.stages = 3, .workers = {"w0", "w1", "w2"}}},
        shape_case{"guesses", {.stages = 2, .workers = {"w0", "w1"}, .in_model = "lookup_tokens = 4"}},
        shape_case{"little_memory", {.workers = {"w0"}, .in_scheduler = "max_batch_tokens = 48\nmax_sequences = 12"}},
        shape_case{"two_ranks", {.tensor = 2, .workers = {"w0", "w1"}}},
        shape_case{"the_head_is_a_rank", {.tensor = 2, .workers = {"w0"}, .head_works = true}},
        shape_case{"two_stages_of_two_ranks", {.stages = 2, .tensor = 2, .workers = {"w0", "w1", "w2", "w3"}}},
        shape_case{"two_replicas", {.replicas = 2, .workers = {"w0", "w1"}}}),
    [](const auto& each) { return each.param.name; });

/// What a cluster of this plan says of a prompt, by HTTP.
json scores_of_a_prompt(const test_site& site, cluster_plan plan) {
  plan.http = true;
  test_cluster cluster(site, plan);
  cluster.up();
  const json question = {{"prompt", {1, 7, 42, 9, 77, 30, 5, 61, 2, 18, 33, 8, 90, 4, 12, 6, 50, 3, 71}},
                         {"echo", true},
                         {"logprobs", 3},
                         {"max_tokens", 5},
                         {"seed", 7}};
  const auto [status, answer] = cluster.ask_http("POST", "/v1/completions", question.dump());
  EXPECT_EQ(status, 200) << answer;
  return json::parse(answer).at("choices");
}

TEST(same_scores_over_processes, as_in_one) {
  const test_site site;
  const json alone = scores_of_a_prompt(site, {});
  EXPECT_EQ(alone[0]["logprobs"]["token_logprobs"].size(), 19u + 5u);
  EXPECT_EQ(alone, scores_of_a_prompt(site, {.stages = 2, .workers = {"w0", "w1"}}));
  EXPECT_EQ(alone, scores_of_a_prompt(site, {.tensor = 2, .workers = {"w0", "w1"}}));
}

TEST(same_tokens_of_commands, generate_and_submit_say_the_same) {
  const test_site site;
  test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}});
  cluster.up();
  const words generate{"generate", site.model().string(), "--quant", "u8"}, submit{"submit"};
  const auto said_by = [&](words command, const words& ask) {
    command.insert(command.end(), ask.begin(), ask.end());
    return cluster.run(command);
  };
  const words ask{"--tokens", "1,2,3", "--seed", "5", "--temperature", "0.9", "--max-tokens", "100", "--json"};
  const json alone = json::parse(said_by(generate, ask)), together = json::parse(said_by(submit, ask));
  EXPECT_EQ(alone.at("tokens"), together.at("tokens"));
  EXPECT_EQ(alone.at("text"), together.at("text"));
  const words ends_before_its_first_letter{"--prompt", "x", "--regex", "ab", "--stop", "a"};
  EXPECT_EQ(said_by(generate, ends_before_its_first_letter), "\n");
  EXPECT_EQ(said_by(submit, ends_before_its_first_letter), "\n");
}

}  // namespace
}  // namespace troupe::test
