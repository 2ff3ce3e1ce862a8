#include "cli/model/sampling_options.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

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

void add_choice(CLI::App& own, sampling_options& options) {
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

void add_ends(CLI::App& own, sampling_options& options, const std::string& json_help) {
  sampling_params& params = options.params;
  own.add_option("--stop", params.stop, "end before this text; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  own.add_option("--stop-token", params.stop_tokens, "end at this token; may be repeated")
      ->type_name("ID")
      ->allow_extra_args(false);
  own.add_flag("--ignore-eos", params.ignore_eos, "the model's own end tokens do not end the answer");
  if (json_help.empty()) return;
  own.add_option("--logprobs", params.logprobs, "report each token's log-probability and the N likeliest; needs --json")
      ->type_name("N");
  own.add_flag("--json", options.json, json_help);
}

void add_form(CLI::App& own, sampling_options& options) {
  CLI::Option* schema =
      own.add_option("--json-schema", options.json_schema, "the answer is JSON that this schema accepts")
          ->type_name("FILE");
  CLI::Option* regex =
      own.add_option("--regex", options.regex, "the answer matches this expression as a whole")->type_name("EXPR");
  CLI::Option* grammar =
      own.add_option("--grammar", options.grammar, "the answer follows the rules in this file")->type_name("FILE");
  schema->excludes(regex)->excludes(grammar);
  regex->excludes(grammar);
}

output_constraint form_of(const sampling_options& options) {
  if (!options.json_schema.empty())
    return {constraint_kind::json_schema, detail::read_text(options.json_schema, most_constraint_bytes)};
  if (!options.grammar.empty())
    return {constraint_kind::grammar, detail::read_text(options.grammar, most_constraint_bytes)};
  if (!options.regex.empty()) return {constraint_kind::regex, options.regex};
  return {};
}

/// Whatever the model's tokenizer, a constraint that nothing can satisfy is none.
void check_form(const output_constraint& form) {
  byte_set all;
  all.set();
  if (form) (void)compile(form, all);
}

}  // namespace

void add_prompt(CLI::App& command, std::optional<std::string>& prompt, std::vector<token_id>& tokens) {
  command.add_option("--prompt", prompt, "the text to continue; \"\" is the model's BOS token alone")
      ->type_name("TEXT");
  command.add_option("--tokens", tokens, "the same as token ids: 1,2,3")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("IDS");
}

void add_sampling(CLI::App& command, sampling_options& options, const std::string& json_help) {
  add_choice(command, options);
  add_form(command, options);
  add_ends(command, options, json_help);
}

sampling_params checked_sampling(const sampling_options& options) {
  if (options.params.logprobs && !options.json) refuse("--logprobs without --json: add --json");
  sampling_params params = options.params;
  for (const auto& text : options.biases) params.logit_bias.push_back(bias_of(text));
  params.constraint = form_of(options);
  check_form(params.constraint);
  check(params, std::numeric_limits<token_id>::max());
  return params;
}

nlohmann::ordered_json logprobs_json(std::span<const sampled_token> details) {
  auto all = nlohmann::ordered_json::array();
  for (const sampled_token& each : details) {
    auto top = nlohmann::ordered_json::array();
    for (const auto& [token, logprob] : each.alternatives) top.push_back({{"token", token}, {"logprob", logprob}});
    all.push_back({{"token", each.token}, {"logprob", each.logprob.value_or(0.0f)}, {"top", std::move(top)}});
  }
  return all;
}

}  // namespace troupe
