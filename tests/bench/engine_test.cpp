#include "bench/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/ops/isa.hpp"
#include "tests/base/refusal.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"

namespace troupe::bench {
namespace {

std::string refusal_of(
    const engine_bench& options, report::printer print = [](std::string_view) {}) {
  thread_pool pool(1);
  return test::refusal([&] {
    run_engine(load_for_test(golden / "gpt2", std::nullopt), options, {pool, kernels()}, report(true, print));
  });
}

TEST(engine_bench, refuses_sequences_for_which_the_model_has_no_positions) {
  const testing::Matcher<std::string> names_them = testing::HasSubstr("the model has 160");
  engine_bench prefill, decode, recorded;
  prefill.prompt = 512;
  decode.prompt = 16;
  decode.decode_context = 128;
  decode.decode = 64;
  recorded.trace.file = "any";
  recorded.trace.context = 2048;
  EXPECT_THAT(refusal_of(prefill), names_them);
  EXPECT_THAT(refusal_of(decode), names_them);
  EXPECT_THAT(refusal_of(recorded), names_them);
}

TEST(engine_bench, refuses_a_trace_that_is_not_there_before_it_measures_anything) {
  engine_bench recorded;
  recorded.prompt = recorded.decode_context = recorded.decode = 16;
  recorded.trace.file = "/nowhere/trace.csv";
  recorded.trace.context = 64;
  const auto refusal = refusal_of(recorded, [](std::string_view measured) { ADD_FAILURE() << measured; });
  EXPECT_THAT(refusal, testing::StartsWith("/nowhere/trace.csv: "));
}

TEST(engine_bench, refuses_answers_too_short_to_compare_under_a_schema) {
  engine_bench one_token;
  one_token.constrained = true;
  one_token.prompt = one_token.decode_context = 16;
  one_token.decode = 1;
  EXPECT_THAT(refusal_of(one_token), testing::HasSubstr("no step had 1 sequences: ask for more"));
}

}  // namespace
}  // namespace troupe::bench
