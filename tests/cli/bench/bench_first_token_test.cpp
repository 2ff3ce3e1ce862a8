#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

class bench_first_token : public program {};

/// Before it asks any cluster.
TEST_F(bench_first_token, refuses_prompts_for_which_the_model_has_no_positions) {
  const std::string model = (golden / "gpt2").string();
  for (const char* tokens : {"160", "512"})
    refused(
        {"bench", "first-token", model, "--threads", "1", "--connect", "tcp://127.0.0.1:1", "--prompt-tokens", tokens},
        std::string("--prompt-tokens ") + tokens + ": the model has 160 positions");
}

}  // namespace
}  // namespace troupe::test
