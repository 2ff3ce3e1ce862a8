#include <cmath>

#include "tests/cli/program.hpp"

namespace troupe::test {
namespace {

using eval_command = program;

TEST_F(eval_command, tells_how_well_a_text_is_predicted) {
  const words asked{"eval", readable_model().string(), "--text",
                    folder().write("text", "HELLO<|endoftext|>YOU").string()};
  const json got = run_json(asked);
  EXPECT_EQ(got.size(), 3u);
  EXPECT_EQ(got["tokens"], 6) << "of each document all but the first";
  const auto nll = got["nll"].get<double>();
  EXPECT_NEAR(got["perplexity"].get<double>(), std::exp(nll), 1e-9 * std::exp(nll));
  EXPECT_EQ(run(asked).out, fmt::format("6 tokens, nll {:.4f}, perplexity {:.4f}\n", nll, std::exp(nll)));
}

TEST_F(eval_command, reads_standard_input_as_it_reads_a_file) {
  const std::string model = readable_model().string(), text = folder().write("text", "HELLO<|endoftext|>ALL").string();
  const std::string script = R"(text=$1; shift; cat "$text" | "$0" eval "$@" --text -)";
  process piped({"/bin/sh", "-c", script, TROUPE_BINARY, text, model, "--json"}, path("said"),
                {"TROUPE_CACHE=" + cache().string()});
  EXPECT_EQ(piped.wait(), 0) << piped.error();
  EXPECT_EQ(json::parse(piped.out()), run_json({"eval", model, "--text", text}));
}

/// Each document is judged by itself: more of the same one change no mean.
TEST_F(eval_command, turns_longrope_by_the_context_however_short_the_text) {
  const auto model = readable_model("long", "phi3");
  json config = json::parse(read_file(model / "config.json"));
  config["original_max_position_embeddings"] = 64;
  config["rope_scaling"]["original_max_position_embeddings"] = 64;
  folder().write("long/config.json", config.dump());
  const std::string document = "HELLO<|endoftext|>";
  std::string documents;
  for (int i = 0; i < 8; ++i) documents += document;
  const auto nll = [&](const std::string& text, const char* context) {
    return run_json({"eval", model.string(), "--quant", "f32", "--context", context, "--text",
                     folder().write("text", text).string()})["nll"]
        .get<double>();
  };
  EXPECT_NEAR(nll(document, "256"), nll(documents, "256"), 1e-9);
  EXPECT_NEAR(nll(document, "64"), nll(documents, "64"), 1e-9);
  EXPECT_GT(std::abs(nll(document, "64") - nll(document, "256")), 1e-6) << "the short divisors";
}

TEST_F(eval_command, says_of_empty_standard_input_what_to_do) {
  const std::string script = R"("$0" eval "$1" --text - < /dev/null)";
  process piped({"/bin/sh", "-c", script, TROUPE_BINARY, readable_model().string()}, path("said"),
                {"TROUPE_CACHE=" + cache().string()});
  const int code = piped.wait();
  expect_one_line({code, piped.out(), piped.error()}, 2, "standard input: is empty: pipe something in, or name a file");
}

}  // namespace
}  // namespace troupe::test
