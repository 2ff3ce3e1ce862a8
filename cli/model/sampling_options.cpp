#include "cli/model/sampling_options.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/ascii.hpp"
#include "base/entropy.hpp"
#include "base/error.hpp"
#include "base/number_in.hpp"
#include "base/paths.hpp"
#include "base/to_size.hpp"
#include "cli/numbers.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

token_bias bias_of(const std::string& text) {
  const std::size_t equals = std::min(text.find('='), text.size());
  const auto token = number_in<token_id>(std::string_view(text).substr(0, equals));
  const auto bias = number_in<double>(std::string_view(text).substr(std::min(equals + 1, text.size())));
  if (!token || !bias) refuse("--logit-bias '{}': write TOKEN=VALUE, like 42=-5", text);
  return {*token, *bias};
}

void add_choice(CLI::App& own, sampling_options& options) {
  sampling_params& params = options.params;
  params.temperature = 0;
  params.max_tokens = 128;
  own.add_option("--max-tokens", params.max_tokens,
                 "tokens of the answer at most; -1: as many as the context has room for [128]")
      ->type_name("N");
  own.add_option("--temperature", params.temperature, "0 takes the most likely token, always [0]")->type_name("T");
  own.add_option("--top-k", params.top_k, "only the K most likely; 0: all [0]")->type_name("K");
  own.add_option("--top-p", params.top_p, "only the most likely that reach this share [1]")->type_name("P");
  own.add_option("--min-p", params.min_p, "only those with this share of the most likely one [0]")->type_name("P");
  own.add_option("--repetition-penalty", params.repetition_penalty, "on tokens of prompt and answer [1]")
      ->type_name("X");
  own.add_option("--presence-penalty", params.presence_penalty, "on tokens in the answer, -2 to 2 [0]")->type_name("X");
  own.add_option("--frequency-penalty", params.frequency_penalty,
                 "on tokens in the answer, for each time that they came, -2 to 2 [0]")
      ->type_name("X");
  own.add_option("--logit-bias", options.biases, "added to a token's logit, -100 to 100; may be repeated")
      ->type_name("ID=VALUE");
  const auto take_seed = [&options](const std::string& text) {
    options.draws_seed = text == "-1";
    options.params.seed = number_in<std::uint64_t>(text).value_or(0);
  };
  own.add_option_function<std::string>("--seed", take_seed, "the same seed draws the same answer; -1: one is drawn [0]")
      ->type_name("S");
}

void add_ends(CLI::App& own, sampling_options& options, const std::string& json_help) {
  sampling_params& params = options.params;
  own.add_option("--stop", params.stop, "end before this text; may be repeated")->type_name("TEXT");
  own.add_option("--stop-token", params.stop_tokens, "end at this token; may be repeated")->type_name("ID");
  own.add_flag("--ignore-eos", params.ignore_eos, "the model's own end tokens do not end the answer");
  own.add_option("--min-tokens", params.min_tokens, "no stop or end token ends the answer before so many tokens [0]")
      ->type_name("N");
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

/// Refuses a constraint that no text can satisfy, whatever the model's tokenizer. `given`: the file or the flag that it
/// is from, which stands where the error has the API's name of it.
void check_form(const output_constraint& form, const std::string& given) {
  byte_set all;
  all.set();
  try {
    if (form) (void)compile(form, all);
  } catch (const input_error& error) {
    std::string_view what = error.what();
    if (const std::string name = fmt::format("{}: ", name_of(form.kind)); what.starts_with(name))
      what.remove_prefix(name.size());
    refuse("{}: {}", given, what);
  }
}

/// Without its last line break: what editors and `echo` put there is no part of the prompt.
std::string prompt_in(const std::string& file) {
  constexpr std::streamsize most_bytes = 16 << 20;
  if (is_folder(file)) refuse("--prompt-file {}: is a folder: name a file, or - for standard input", file);
  std::ifstream opened;
  if (file != "-") opened.open(file, std::ios::binary);
  if (file != "-" && !opened)
    refuse("--prompt-file {}: cannot be read: {}: check the path and its permissions", file, std::strerror(errno));
  std::istream& in = file == "-" ? std::cin : opened;
  std::string text(most_bytes, '\0');
  const std::streamsize count = in.read(text.data(), most_bytes).gcount();
  if (in.peek() != std::istream::traits_type::eof()) refuse("--prompt-file {}: has more than 16 MiB: shorten it", file);
  text.resize(to_size(count));
  drop_line_end(text);
  return text;
}

}  // namespace

void add_prompt(CLI::App& command, prompt_options& options, const std::string& verb) {
  CLI::Option* prompt =
      command.add_option("--prompt", options.prompt, "the text to continue; \"\" is the model's BOS token alone")
          ->type_name("TEXT");
  const auto read = [&to = options.prompt](const std::string& file) { to = prompt_in(file); };
  command.add_option_function<std::string>("--prompt-file", read, "the same from a file; - is standard input")
      ->excludes(prompt)
      ->type_name("FILE");
  const auto take = [&tokens = options.tokens](const std::vector<std::string>& lists) {
    for (const std::string& list : lists)
      for (const token_id each : read_token_list("--tokens", list)) tokens.push_back(each);
  };
  command.add_option_function<std::vector<std::string>>("--tokens", take, "the same as token ids: 1,2,3")
      ->type_name("IDS");
  command.add_flag("--chat", options.chat, verb + " the prompt as a user's message, in the model's chat template");
  command.add_option("--system", options.system, "a system message before it")->type_name("TEXT");
}

void check_chat(const prompt_options& options) {
  if ((options.chat || !options.system.empty()) && !options.prompt)
    refuse("--chat and --system need a text: give --prompt");
  if (!options.system.empty() && !options.chat) refuse("--system without --chat: add --chat");
}

void add_sampling(CLI::App& command, sampling_options& options, const std::string& json_help) {
  add_choice(command, options);
  add_form(command, options);
  add_ends(command, options, json_help);
}

sampling_params checked_sampling(const sampling_options& options) {
  if (options.params.logprobs && !options.json) refuse("--logprobs without --json: add --json");
  sampling_params params = options.params;
  if (params.max_tokens == -1) params.max_tokens = INT32_MAX;
  if (options.draws_seed) params.seed = entropy();
  for (const auto& text : options.biases) params.logit_bias.push_back(bias_of(text));
  params.constraint = form_of(options);
  const std::string& file = options.json_schema.empty() ? options.grammar : options.json_schema;
  check_form(params.constraint, file.empty() ? "--regex" : file);
  check(params, std::numeric_limits<token_id>::max());
  return params;
}

}  // namespace troupe
