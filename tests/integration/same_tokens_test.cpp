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

TEST(same_tokens_of_commands, generate_and_submit_say_the_same) {
  const test_site site;
  test_cluster cluster(site, {.stages = 2, .workers = {"w0", "w1"}});
  cluster.up();
  const words ask{"--tokens", "1,2,3", "--seed", "5", "--temperature", "0.9", "--max-tokens", "100", "--json"};
  words generate{"generate", site.model().string(), "--quant", "u8"}, submit{"submit"};
  generate.insert(generate.end(), ask.begin(), ask.end());
  submit.insert(submit.end(), ask.begin(), ask.end());
  const json alone = json::parse(cluster.run(generate)), together = json::parse(cluster.run(submit));
  EXPECT_EQ(alone.at("tokens"), together.at("tokens"));
  EXPECT_EQ(alone.at("text"), together.at("text"));
}

}  // namespace
}  // namespace troupe::test
