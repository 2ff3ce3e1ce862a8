#include "bench/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/base/places.hpp"
#include "tests/base/refusal.hpp"

namespace troupe::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
const std::string good = "2023-11-16 18:15:46.6805900,374,44\n";

std::vector<trace_request> parse(const std::string& text, std::size_t most = 1000) {
  return parse_trace(text, "some.trace", most);
}

TEST(trace, reads_csv_with_times_from_the_first) {
  const auto trace = parse(header + "2023-11-16 23:59:59.5000000,374,44\r\n\n2023-11-17 00:00:01.2500000,396,109");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].at, 0);
  EXPECT_EQ(trace[0].prompt, 374);
  EXPECT_EQ(trace[0].answer, 44);
  EXPECT_THAT(trace[0].blocks, IsEmpty());
  EXPECT_NEAR(trace[1].at, 1.75, 1e-6);
  EXPECT_EQ(trace[1].prompt, 396);
}

TEST(trace, reads_json_lines_with_names_of_blocks) {
  const auto trace = parse(R"({"timestamp": 500, "input_length": 513, "output_length": 7, "hash_ids": [0, 14]})"
                           "\n"
                           R"({"timestamp": 27482, "input_length": 1, "output_length": 1, "hash_ids": [3], "more": {}})"
                           "\n"
                           R"({"timestamp": 27482, "input_length": 9, "output_length": 1})");
  ASSERT_EQ(trace.size(), 3u);
  EXPECT_THAT(trace[0].blocks, ElementsAre(0u, 14u));
  EXPECT_EQ(trace[0].at, 0);
  EXPECT_NEAR(trace[1].at, 26.982, 1e-9);
  EXPECT_THAT(trace[2].blocks, IsEmpty());
}

TEST(trace, reads_no_more_than_is_wanted) {
  EXPECT_EQ(parse(header + good + good + good, 2).size(), 2u);
  EXPECT_EQ(parse(header + good + "what follows is not looked at", 1).size(), 1u);
}

struct bad_trace {
  const char* name;
  std::string text, place, what;
};

class bad_traces : public ::testing::TestWithParam<bad_trace> {};

TEST_P(bad_traces, are_refused_with_file_and_line) {
  const std::string refused = test::refusal([] { parse(GetParam().text); });
  EXPECT_THAT(refused, StartsWith("some.trace" + GetParam().place));
  EXPECT_THAT(refused, HasSubstr(GetParam().what));
  EXPECT_EQ(refused.find('\n'), refused.npos);
}

std::string json_line(const std::string& fields) {
  return "{" + fields + "}\n";
}
const std::string good_json = json_line(R"("timestamp":5,"input_length":3,"output_length":4)");

INSTANTIATE_TEST_SUITE_P(
    kinds, bad_traces,
    ::testing::Values(
        bad_trace{"empty", "", ":1", "neither CSV"}, bad_trace{"other_text", "hello\n", ":1", "neither CSV"},
        bad_trace{"no_rows", header, "", "no request"},
        bad_trace{"two_fields", header + good + "2023-11-16 18:15:47,374\n", ":3", "three fields"},
        bad_trace{"four_fields", header + "2023-11-16 18:15:47,374,1,2\n", ":2", "three fields"},
        bad_trace{"no_date", header + "yesterday,374,44\n", ":2", "TIMESTAMP"},
        bad_trace{"no_such_day", header + "2023-02-30 18:15:47,374,44\n", ":2", "TIMESTAMP"},
        bad_trace{"no_such_hour", header + "2023-02-20 24:15:47,374,44\n", ":2", "TIMESTAMP"},
        bad_trace{"seconds_nan", header + "2023-02-20 23:15:nan,374,44\n", ":2", "TIMESTAMP"},
        bad_trace{"no_number", header + "2023-11-16 18:15:47,374,4x\n", ":2", "GeneratedTokens"},
        bad_trace{"zero", header + "2023-11-16 18:15:47,0,44\n", ":2", "ContextTokens is 0"},
        bad_trace{"negative", header + "2023-11-16 18:15:47,12,-4\n", ":2", "GeneratedTokens is -4"},
        bad_trace{"huge", header + "2023-11-16 18:15:47,99999999999,4\n", ":2", "ContextTokens"},
        bad_trace{"overflow", header + "2023-11-16 18:15:47,99999999999999999999999,4\n", ":2", "no number"},
        bad_trace{"backwards", header + good + "2023-11-16 18:15:45,1,1\n", ":3", "before"},
        bad_trace{"broken_json", good_json + "{\"timestamp\":\n", ":2", ""},
        bad_trace{"no_object", good_json + "[1]\n", ":2", "object"},
        bad_trace{"missing", good_json + json_line(R"("timestamp":5,"input_length":3)"), ":2", "output_length"},
        bad_trace{"text_for_number", json_line(R"("timestamp":5,"input_length":"3","output_length":4)"), ":1",
                  "input_length"},
        bad_trace{"negative_time", json_line(R"("timestamp":-5,"input_length":3,"output_length":4)"), ":1",
                  "timestamp"},
        bad_trace{"no_tokens", json_line(R"("timestamp":5,"input_length":0,"output_length":4)"), ":1",
                  "input_length is 0"},
        bad_trace{"too_few_blocks", json_line(R"("timestamp":5,"input_length":513,"output_length":4,"hash_ids":[1])"),
                  ":1", "hash_ids"},
        bad_trace{"blocks_are_no_list", json_line(R"("timestamp":5,"input_length":3,"output_length":4,"hash_ids":1)"),
                  ":1", "hash_ids"},
        bad_trace{"negative_block", json_line(R"("timestamp":5,"input_length":3,"output_length":4,"hash_ids":[-1])"),
                  ":1", "hash_ids"},
        bad_trace{"half_a_block", json_line(R"("timestamp":5,"input_length":3,"output_length":4,"hash_ids":[1.5])"),
                  ":1", "hash_ids"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(trace, a_file_that_is_not_there_is_refused_by_name) {
  EXPECT_THROW(read_trace("no/such.csv", 1), input_error);
}

TEST(trace, the_recorded_ones_are_read_to_their_end) {
  const std::filesystem::path folder = test::shared_data / "traces";
  const auto azure = folder / "azure_llm_2023" / "AzureLLMInferenceTrace_conv.csv";
  const auto mooncake = folder / "mooncake_fast25" / "conversation_trace.jsonl";
  if (!std::filesystem::exists(azure) || !std::filesystem::exists(mooncake))
    GTEST_SKIP() << "the traces are not in " << folder;
  EXPECT_EQ(read_trace(azure, 1 << 20).size(), 19366u);
  const auto named = read_trace(mooncake, 1 << 20);
  EXPECT_EQ(named.size(), 12031u);
  EXPECT_NEAR(named.back().at, 3536.999, 1e-6);
}

}  // namespace
}  // namespace troupe::bench
