#include <cmath>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/model/evaluate_examples.hpp"
#include "cli/model/evaluate_text.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

constexpr std::int64_t usual_length = 512;  // as training has it

struct eval_options {
  model_options model;
  std::string text, data;
  std::int64_t length = 0;  // of rows; 0: the usual one
  bool json = false;
};

void check(const eval_options& o) {
  if (o.text.empty() && o.data.empty()) refuse("nothing to measure with: --text FILE, or --data FILE of examples");
  if (!o.text.empty() && !o.data.empty()) refuse("--text and --data are both given: leave one of them out");
  if (o.data.empty() && o.length != 0) refuse("--length is for --data: leave it out");
  if (o.data.empty()) return;
  if (o.length != 0 && o.length < 2) refuse("--length is {}: use 2 or more", o.length);
  if (!o.model.kv.empty()) refuse("--kv is for --text: examples are measured as training does, which caches nothing");
  if (o.model.context != 0) refuse("--context is for --text: examples have rows of --length");
}

void check_is_number(double nll, const std::string& model) {
  if (!std::isfinite(nll))
    throw std::runtime_error(
        fmt::format("{}: predicts no numbers: its weights are so large that sums of them are infinite", model));
}

void eval_text(const eval_options& options) {
  const mapped_file text = text_in(options.text);
  runtime run(options.model);
  const evaluation result = evaluate_text(run, *load_tokenizer(options.model.path), text, "evaluating");
  check_is_number(result.nll, options.model.path);
  if (options.json)
    print_json(
        nlohmann::ordered_json{{"tokens", result.tokens}, {"nll", result.nll}, {"perplexity", result.perplexity()}});
  else
    print(fmt::format("{} tokens, nll {:.4f}, perplexity {:.4f}\n", result.tokens, result.nll, result.perplexity()));
}

void eval_examples(const eval_options& options) {
  const example_evaluation result =
      evaluate_examples(options.model, options.data, options.length ? options.length : usual_length);
  check_is_number(result.loss, options.model.path);
  if (options.json)
    print_json(nlohmann::ordered_json{{"examples", result.examples},
                                      {"tokens", result.tokens},
                                      {"loss", result.loss},
                                      {"accuracy", result.accuracy}});
  else
    print(fmt::format("{} examples, {} tokens, loss {:.4f}, accuracy {:.1f}%\n", result.examples, result.tokens,
                      result.loss, 100 * result.accuracy));
}

int eval(const eval_options& options) {
  check(options);
  if (options.data.empty())
    eval_text(options);
  else
    eval_examples(options);
  return 0;
}

}  // namespace

void add_eval(CLI::App& program, command& chosen) {
  const auto [own, options] = add_command(program, chosen, "eval",
                                          "Measure how well a model predicts a text, or the answers of examples", eval);
  add_model_options(own, options.model);
  own.add_option("--text", options.text, "the text, - is standard input; <|endoftext|> separates documents")
      ->type_name("FILE");
  own.add_option("--data", options.data, "examples as those of train, measured as training does; - is standard input")
      ->type_name("FILE");
  own.add_option("--length", options.length, "with --data: tokens of a row that examples are packed into [512]")
      ->type_name("N");
  own.add_flag("--json", options.json,
               R"(print {"tokens","nll","perplexity"}; of examples {"examples","tokens","loss","accuracy"})");
}

}  // namespace troupe
