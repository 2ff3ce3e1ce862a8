#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "actors/requests/own_logprobs_json.hpp"
#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/model/model_options.hpp"
#include "cli/model/sampling_options.hpp"
#include "cli/output.hpp"
#include "model/engine/generate.hpp"
#include "model/text/channels.hpp"
#include "model/text/chat_format.hpp"
#include "model/text/model_text.hpp"
#include "model/text/thoughts.hpp"

namespace troupe {
namespace {

struct generate_options {
  model_options model;
  prompt_options question;
  sampling_options sampling;
};

/// Checks what can be checked before a model is loaded.
sampling_params checked_params(const generate_options& options) {
  if (options.question.prompt.has_value() == !options.question.tokens.empty())
    refuse("generate takes one of --prompt, --prompt-file and --tokens: give one of them");
  check_chat(options.question);
  return checked_sampling(options.sampling);
}

struct asked_prompt {
  std::vector<token_id> tokens;
  bool skip_special = true;  ///< special tokens are no part of the answer's text; they tell thoughts
};

asked_prompt prompt_of(const generate_options& options, const model_config& config,
                       const std::shared_ptr<const tokenizer>& tokens, bool has_form) {
  const auto& [prompt, own_tokens, chat, system] = options.question;
  if (!prompt) return {own_tokens};
  if (!chat) return {prompt_of_text(*tokens, config, *prompt, options.model.path)};
  const chat_format format(options.model.path, tokens);
  std::string text = format.render(system, *prompt);
  if (has_form && has_channels(format.tool_source())) text += final_channel;
  return {prompt_of_chat(*tokens, text), !shows_special(format.tool_source())};
}

void print_answer(std::span<const token_id> prompt, const generation& answer, bool logprobs) {
  nlohmann::ordered_json out;
  out["prompt_tokens"] = prompt;
  out["tokens"] = answer.tokens;
  out["text"] = answer.text;
  out["finish_reason"] = name_of(answer.reason);
  if (logprobs) out["logprobs"] = own_logprobs_json(answer.details);
  print_json(out);
}

int generate_command(const generate_options& options) {
  sampling_params params = checked_params(options);
  runtime run(options.model);
  // Tokens can be continued without knowing what they mean.
  const bool readable = options.question.prompt || !tokenizer_kind(options.model.path).empty();
  const auto tokens = readable ? load_tokenizer(options.model.path) : no_tokenizer();
  const auto [prompt, skip_special] = prompt_of(options, run.model().config, tokens, bool(params.constraint));
  check_length(prompt.size(), run.context());
  const auto length = static_cast<std::int64_t>(prompt.size());
  params.max_tokens = std::min(params.max_tokens, run.context() - length);
  params.min_tokens = std::min(params.min_tokens, params.max_tokens);
  single_sequence sequence = run.sequence(length + params.max_tokens, length);
  const auto show = [&](std::string_view piece) {
    if (!options.sampling.json) print(piece);
  };
  const std::vector<token_id> end_tokens = end_tokens_of(run.model().config, *tokens);
  const generation answer = generate(sequence, run.kernels(), {prompt, end_tokens, params, tokens, show, skip_special});
  if (options.sampling.json)
    print_answer(prompt, answer, params.logprobs.has_value());
  else
    print(readable ? "\n" : fmt::format("{}\n", fmt::join(answer.tokens, ",")));
  return 0;
}

}  // namespace

void add_generate(CLI::App& program, command& chosen) {
  const auto [own, options] = add_command(program, chosen, "generate", "Continue a prompt", generate_command);
  add_model_options(own, options.model);
  add_prompt(own, options.question, "write");
  add_sampling(own, options.sampling, R"(print {"prompt_tokens","tokens","text","finish_reason"} at the end)");
}

}  // namespace troupe
