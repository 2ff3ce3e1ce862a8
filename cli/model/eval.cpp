#include <cmath>
#include <stdexcept>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/model/evaluate_text.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

struct eval_options {
  model_options model;
  std::string text;
  bool json = false;
};

int eval(const eval_options& options) {
  const mapped_file text = text_in(options.text);
  runtime run(options.model);
  const evaluation result = evaluate_text(run, *load_tokenizer(options.model.path), text, "evaluating");
  if (!std::isfinite(result.nll))
    throw std::runtime_error(fmt::format(
        "{}: predicts no numbers: its weights are so large that sums of them are infinite", options.model.path));
  if (options.json)
    print_json(
        nlohmann::ordered_json{{"tokens", result.tokens}, {"nll", result.nll}, {"perplexity", result.perplexity()}});
  else
    print(fmt::format("{} tokens, nll {:.4f}, perplexity {:.4f}\n", result.tokens, result.nll, result.perplexity()));
  return 0;
}

}  // namespace

void add_eval(CLI::App& program, command& chosen) {
  const auto [own, options] = add_command(
      program, chosen, "eval", "Measure how well a model predicts a text: mean nll per token, perplexity", eval);
  add_model_options(own, options.model);
  own.add_option("--text", options.text, "the text, - is standard input; <|endoftext|> separates documents")
      ->type_name("FILE")
      ->required();
  own.add_flag("--json", options.json, R"(print {"tokens","nll","perplexity"})");
}

}  // namespace troupe
