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

class eval_of_examples : public program {
 protected:
  std::string lines(const char* name, int count) const {
    std::string all;
    for (int i = 0; i < count; ++i)
      all += json{{"prompt", std::string(1, static_cast<char>('A' + i))}, {"completion", "HELLO"}}.dump() + "\n";
    return folder().write(name, all).string();
  }
  const std::string model_ = readable_model().string();
};

TEST_F(eval_of_examples, measures_them_as_training_does) {
  const std::string held = lines("held.jsonl", 5), out = path("out").string();
  const json trained = run_json({"train", "--local", model_, "--data", lines("data.jsonl", 12), "--validation", held,
                                 "--adapter", out, "--lr", "0.01", "--steps", "20"});
  const json base = run_json({"eval", model_, "--data", held}),
             adapted = run_json({"eval", model_, "--data", held, "--adapter", out});
  EXPECT_EQ(base["loss"], trained["base_validation_loss"]);
  EXPECT_EQ(adapted["loss"], trained["validation_loss"]);
  EXPECT_EQ(adapted["accuracy"], trained["validation_accuracy"]);
  EXPECT_EQ(adapted["examples"], 5);
  EXPECT_EQ(adapted["tokens"], 5 * 6) << "the completions with their end";
  EXPECT_EQ(run({"eval", model_, "--data", held, "--adapter", out}).out,
            fmt::format("5 examples, 30 tokens, loss {:.4f}, accuracy {:.1f}%\n", adapted["loss"].get<double>(),
                        100 * adapted["accuracy"].get<double>()));
}

TEST_F(eval_of_examples, reads_standard_input) {
  const auto piped_with = [&](const std::string& file) {
    const std::string script = R"("$0" eval "$1" --json --data - < "$2")";
    process piped({"/bin/sh", "-c", script, TROUPE_BINARY, model_, file}, path("said"),
                  {"TROUPE_CACHE=" + cache().string()});
    const int code = piped.wait();
    return ran{code, piped.out(), piped.error()};
  };
  const std::string file = lines("held.jsonl", 3);
  EXPECT_EQ(json::parse(piped_with(file).out), run_json({"eval", model_, "--data", file}));
  expect_one_line(piped_with(folder().write("bad", "{\"text\": 5}\n").string()), 2, "standard input:1: ");
}

TEST_F(eval_of_examples, are_no_text) {
  const std::string file = lines("held.jsonl", 2);
  refused({"eval", model_, "--text", file}, "held.jsonl: line 1 is an example in JSON: give plain text, or measure");
  refused({"eval", model_}, "--text FILE, or --data FILE");
  refused({"eval", model_, "--text", file, "--data", file}, "leave one of them out");
  refused({"eval", model_, "--data", file, "--kv", "f16"}, "--kv is for --text");
  refused({"eval", model_, "--data", file, "--context", "8"}, "--context is for --text");
  refused({"eval", model_, "--data", file, "--length", "1"}, "--length is 1: use 2 or more");
  refused({"eval", model_, "--text", file, "--length", "8"}, "--length is for --data");
}

TEST_F(eval_of_examples, says_how_many_are_cut) {
  const ran got = run({"eval", model_, "--data", lines("held.jsonl", 2), "--length", "4"});
  EXPECT_EQ(got.code, 0) << got.error;
  EXPECT_NE(got.error.find("2 examples are cut to 4 tokens"), std::string::npos) << got.error;
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
