// However often the head dies in the midst of a batch job: each line has one output, the one that it would have had.
#include "tests/actors/simulation/course_of_events.hpp"

namespace troupe::test {
namespace {

constexpr std::size_t lines = 200;

std::vector<std::string> job_lines() {
  const std::vector<std::string> adapters{"", "pricing@1", "pricing@2"};
  std::vector<std::string> made;
  for (std::size_t i = 0; i < lines; ++i) {
    json line{{"tokens", request_of(i % kinds).engine.sequence.prompt}, {"max_tokens", 1 + i % 30}, {"seed", i}};
    line["temperature"] = i % 2;
    line["adapter"] = adapters[i % 3];
    made.push_back(line.dump());
  }
  return made;
}

void submit(simulated_cluster& cluster) {
  cluster.command("job.create", {{"id", "job"}, {"lines", lines}, {"options", json::object()}, {"tenant", ""}});
  cluster.command("job.lines", {{"id", "job"}, {"first", 0}, {"lines", job_lines()}});
  cluster.command("job.seal", {{"id", "job"}});
}

bool is_over(simulated_cluster& cluster) {
  return cluster.has_head() && cluster.command("job.get", {{"id", "job"}})["state"] == "succeeded";
}

bool pass_until_over(simulated_cluster& cluster) {
  for (int i = 0; i < 1200 && !is_over(cluster); ++i) cluster.pass(milliseconds(100));
  return is_over(cluster);
}

/// What a client reads.
std::vector<json> outputs(simulated_cluster& cluster) {
  return outputs_in(cluster.command("job.outputs", {{"id", "job"}, {"from", 0}}));
}

simulated_cluster::options with_journal(std::uint64_t seed) {
  auto options = options_of(seed);
  options.has_journal = true;
  return options;
}

TEST(head_faults, leave_each_line_of_a_job_the_one_output_that_it_would_have_had) {
  const simulated_model model;
  simulated_cluster undisturbed(model, with_journal(1));
  submit(undisturbed);
  ASSERT_TRUE(pass_until_over(undisturbed));
  const std::vector<json> expected = outputs(undisturbed);
  ASSERT_EQ(expected.size(), lines);
  for_seeds(3, [&](std::uint64_t seed) {
    course_of_events course(model, with_journal(seed));
    simulated_cluster& cluster = course.cluster;
    submit(cluster);
    cluster.pass(milliseconds(1100));  // it begins
    EXPECT_FALSE(is_over(cluster));
    for (int time = 0; time < 6; ++time) {
      cluster.random() % 3 == 0 ? course.cause_fault() : cluster.kill_head();
      cluster.pass(milliseconds(cluster.random() % 4000));
    }
    EXPECT_TRUE(pass_until_over(cluster));
    EXPECT_EQ(outputs(cluster), expected);
  });
}

}  // namespace
}  // namespace troupe::test
