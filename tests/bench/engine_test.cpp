#include "bench/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/model_work.hpp"
#include "model/ops/isa.hpp"
#include "tests/base/refusal.hpp"
#include "tests/model/arch/golden.hpp"
#include "tests/model/arch/models.hpp"
#include "tests/model/formats/fixtures.hpp"

namespace troupe::bench {
namespace {

std::string refusal_of(
    const engine_bench& options, report::printer print = [](std::string_view) {}) {
  thread_pool pool(1);
  return test::refusal([&] {
    run_engine(load_for_test(golden / "gpt2", std::nullopt), options, {}, {pool, kernels()}, report(true, print));
  });
}

std::vector<nlohmann::json> rows_of(const std::shared_ptr<const loaded_model>& model, const engine_bench& options) {
  static std::vector<nlohmann::json> rows;  // a printer has nothing of its own
  rows.clear();
  thread_pool pool(1);
  run_engine(model, options, {}, {pool, kernels()},
             report(true, [](std::string_view line) { rows.push_back(nlohmann::json::parse(line)); }));
  return rows;
}

TEST(engine_bench, refuses_sequences_for_which_the_model_has_no_positions) {
  const testing::Matcher<std::string> names_them = testing::HasSubstr("the model has 160");
  model_bench prefill, decode;
  trace_bench recorded;
  adapters_bench with_adapters{.on_disk = 1, .prompt = 128, .answer = 64};
  prefill.prompt = 512;
  decode.prompt = 16;
  decode.decode_context = 128;
  decode.decode = 64;
  recorded.file = "any";
  recorded.context = 2048;
  EXPECT_THAT(refusal_of(prefill), names_them);
  EXPECT_THAT(refusal_of(decode), names_them);
  EXPECT_THAT(refusal_of(recorded), names_them);
  EXPECT_THAT(refusal_of(with_adapters), names_them);
  EXPECT_THAT(refusal_of(constrained_bench{.prompt = 128, .answer = 64}), names_them);
}

TEST(engine_bench, refuses_a_trace_that_is_not_there_before_it_measures_anything) {
  trace_bench recorded;
  recorded.file = "/nowhere/trace.csv";
  recorded.context = 64;
  const auto refusal = refusal_of(recorded, [](std::string_view measured) { ADD_FAILURE() << measured; });
  EXPECT_THAT(refusal, testing::StartsWith("/nowhere/trace.csv: "));
}

TEST(engine_bench, refuses_answers_too_short_to_compare_under_a_schema) {
  EXPECT_THAT(refusal_of(constrained_bench{.prompt = 16, .answer = 1}),
              testing::HasSubstr("no step had 1 sequences: ask for more"));
}

TEST(engine_bench, counts_keys_and_values_among_what_one_sequence_reads) {
  model_bench one;
  one.prompt = 1;
  one.decode_context = 100;
  one.decode = 32;
  one.batches = {1};
  const auto model = load_for_test(golden / "llama", std::nullopt);
  const auto rows = rows_of(model, one);
  ASSERT_EQ(rows.size(), 5u);
  const nlohmann::json& decode = rows[3];
  EXPECT_EQ(decode["name"], "decode 1 sequence at 100");
  const model_work work = work_of(*model, kv_kind::f16);
  const double bytes = work.step_bytes(1, 1, work.kv_bytes(100 + 32 / 2));
  EXPECT_NEAR(decode["GB/s"].get<double>() * 1e9 / decode["tokens/s"].get<double>() / bytes, 1, 1e-4);
}

/// The model has 160 positions: one request has a long prompt, the other one a long answer.
TEST(engine_bench, runs_a_trace_in_static_batches_that_the_model_has_positions_for) {
  const test::temp_folder folder;
  trace_bench recorded;
  recorded.file = folder
                      .write("trace.csv",
                             "TIMESTAMP,ContextTokens,GeneratedTokens\n"
                             "2023-11-16 18:15:46,150,10\n2023-11-16 18:15:46,10,80\n")
                      .string();
  recorded.sequences = 2;
  const auto rows = rows_of(load_for_test(golden / "gpt2", std::nullopt), recorded);
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[2]["name"], "continuous");
  EXPECT_EQ(rows[2]["computed"], 80 + 10 - 1 + 10 + 80 - 1) << "80 positions are kept for the longest answer";
  EXPECT_EQ(rows[3]["name"], "static batches of 2");
  EXPECT_EQ(rows[3]["computed"], 2 * (80 + 80 - 1));
  EXPECT_EQ(rows[3]["preemptions"], 0);
}

}  // namespace
}  // namespace troupe::bench
