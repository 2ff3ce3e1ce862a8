#include <algorithm>
#include <charconv>
#include <limits>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/model_text.hpp"
#include "cli/output.hpp"
#include "model/engine/generate.hpp"

namespace troupe {
namespace {

struct generate_options {
  model_options model;
  std::optional<std::string> prompt;
  std::vector<token_id> tokens;
  bool chat = false;
  std::string system;
  std::vector<std::string> biases;
  sampling_params params;
  bool json = false;
};

token_bias bias_of(const std::string& text) {
  token_bias bias;
  const char *end = text.data() + text.size(), *equals = std::find(text.data(), end, '=');
  const auto id = std::from_chars(text.data(), equals, bias.token);
  const auto value = equals == end ? id : std::from_chars(equals + 1, end, bias.bias);
  if (equals == end || id.ec != std::errc() || id.ptr != equals || value.ec != std::errc() || value.ptr != end)
    refuse("--logit-bias '{}': write TOKEN=VALUE, like 42=-5", text);
  return bias;
}

/// CLI11 would wrap a negative number and cap a large one.
std::string seed_problem(const std::string& text) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? "" : fmt::format("'{}' is no whole number from 0 to 2^64-1", text);
}

/// What can be said before a model is loaded.
sampling_params checked_params(const generate_options& options) {
  if (options.prompt.has_value() == !options.tokens.empty())
    refuse("generate takes either --prompt or --tokens: give one of them");
  if ((options.chat || !options.system.empty()) && !options.prompt)
    refuse("--chat and --system need a text: give --prompt");
  if (!options.system.empty() && !options.chat) refuse("--system without --chat: add --chat");
  if (options.params.logprobs && !options.json) refuse("--logprobs without --json: add --json");
  sampling_params params = options.params;
  for (const auto& text : options.biases) params.logit_bias.push_back(bias_of(text));
  check(params, std::numeric_limits<token_id>::max());
  return params;
}

std::vector<token_id> prompt_tokens(const generate_options& options, const tokenizer& tokens) {
  if (!options.prompt) return options.tokens;
  if (options.chat)  // the template itself writes BOS
    return tokens.encode(chat_text(options.model.model, tokens, options.system, *options.prompt),
                         {.add_special = false, .parse_special = true});
  auto encoded = tokens.encode(*options.prompt);
  if (encoded.empty() && tokens.bos()) encoded.push_back(*tokens.bos());
  if (encoded.empty())
    refuse("{}: has no BOS token to start from: give a prompt that is not empty", options.model.model);
  return encoded;
}

void check_length(const runtime& run, std::size_t prompt) {
  const auto length = static_cast<std::int64_t>(prompt);
  if (length >= run.context())
    refuse("the prompt has {} tokens, the context {}: shorten the prompt", length, run.context());
}

nlohmann::ordered_json logprobs_of(const generation& answer) {
  auto all = nlohmann::ordered_json::array();
  for (const sampled_token& each : answer.details) {
    auto top = nlohmann::ordered_json::array();
    for (const auto& [token, logprob] : each.alternatives) top.push_back({{"token", token}, {"logprob", logprob}});
    all.push_back({{"token", each.token}, {"logprob", each.logprob.value_or(0.0f)}, {"top", std::move(top)}});
  }
  return all;
}

void print_answer(std::span<const token_id> prompt, const generation& answer, bool logprobs) {
  nlohmann::ordered_json out;
  out["prompt_tokens"] = prompt;
  out["tokens"] = answer.tokens;
  out["text"] = answer.text;
  out["finish_reason"] = name_of(answer.reason);
  if (logprobs) out["logprobs"] = logprobs_of(answer);
  print_json(out);
}

int generate_command(const generate_options& options) {
  sampling_params params = checked_params(options);
  runtime run(options.model);
  // Tokens can be continued without knowing what they mean.
  const bool readable = options.prompt || !tokenizer_kind(options.model.model).empty();
  const auto tokens = readable ? open_tokenizer(options.model.model) : no_tokenizer();
  const auto prompt = prompt_tokens(options, *tokens);
  check_length(run, prompt.size());
  const auto length = static_cast<std::int64_t>(prompt.size());
  params.max_tokens = std::min(params.max_tokens, run.context() - length);
  single_sequence sequence = run.sequence(length + params.max_tokens, length);
  const auto show = [&](std::string_view piece) { options.json ? void() : print(piece); };
  const generation answer =
      generate(sequence, run.kernels(), *tokens, end_tokens_of(run.model().config, *tokens), prompt, params, show);
  if (options.json)
    print_answer(prompt, answer, params.logprobs.has_value());
  else
    print(readable ? "\n" : fmt::format("{}\n", fmt::join(answer.tokens, ",")));
  return 0;
}

void add_sampling(CLI::App& own, generate_options& options) {
  sampling_params& params = options.params;
  params.temperature = 0;
  params.max_tokens = 128;
  own.add_option("--max-tokens", params.max_tokens, "tokens of the answer at most [128]")->type_name("N");
  own.add_option("--temperature", params.temperature, "0 takes the most likely token, always [0]")->type_name("T");
  own.add_option("--top-k", params.top_k, "only the K most likely; 0: all [0]")->type_name("K");
  own.add_option("--top-p", params.top_p, "only the most likely that reach this share [1]")->type_name("P");
  own.add_option("--min-p", params.min_p, "only those with this share of the most likely one [0]")->type_name("P");
  own.add_option("--repetition-penalty", params.repetition_penalty, "on tokens of prompt and answer [1]")
      ->type_name("X");
  own.add_option("--presence-penalty", params.presence_penalty, "on tokens in the answer, -2 to 2 [0]")->type_name("X");
  own.add_option("--frequency-penalty", params.frequency_penalty, "the same for each time, -2 to 2 [0]")
      ->type_name("X");
  own.add_option("--logit-bias", options.biases, "added to a token's logit, -100 to 100; may be repeated")
      ->type_name("ID=VALUE")
      ->allow_extra_args(false);
  own.add_option("--seed", params.seed, "the same seed draws the same answer [0]")
      ->check(seed_problem, "")
      ->type_name("S");
}

void add_ends(CLI::App& own, generate_options& options) {
  sampling_params& params = options.params;
  own.add_option("--stop", params.stop, "end before this text; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  own.add_option("--stop-token", params.stop_tokens, "end at this token; may be repeated")
      ->type_name("ID")
      ->allow_extra_args(false);
  own.add_flag("--ignore-eos", params.ignore_eos, "the model's own end tokens do not end the answer");
  own.add_option("--logprobs", params.logprobs, "report each token's log-probability and the N likeliest; needs --json")
      ->type_name("N");
  own.add_flag("--json", options.json, R"(print {"prompt_tokens","tokens","text","finish_reason"} at the end)");
}

}  // namespace

void add_generate(CLI::App& program, command& chosen) {
  auto options = std::make_shared<generate_options>();
  CLI::App& own = *program.add_subcommand("generate", "Continue a prompt");
  add_model_options(own, options->model);
  own.add_option("--prompt", options->prompt, "the text to continue; \"\" is the model's BOS token alone")
      ->type_name("TEXT");
  own.add_option("--tokens", options->tokens, "the same as token ids: 1,2,3")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("IDS");
  own.add_flag("--chat", options->chat, "write the prompt as a user's message, in the model's chat template");
  own.add_option("--system", options->system, "a system message before it")->type_name("TEXT");
  add_sampling(own, *options);
  add_ends(own, *options);
  own.callback([options, &chosen] { chosen = [options] { return generate_command(*options); }; });
}

}  // namespace troupe
