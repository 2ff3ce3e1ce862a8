#include "actors/batch_line.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <nlohmann/json.hpp>

#include "actors/constraint_fields.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;
using fields = detail::json_fields<json>;

constexpr std::array<std::string_view, 15> option_keys{
    "adapter",          "max_tokens",        "temperature", "top_k", "top_p",    "min_p", "repetition_penalty",
    "presence_penalty", "frequency_penalty", "logit_bias",  "seed",  "logprobs", "stop",  "stop_tokens",
    "ignore_eos"};
constexpr std::array<std::string_view, 4> prompt_keys{"prompt", "messages", "tokens", "custom_id"};

template <class Keys>
bool is_in(const Keys& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

json parse_object(std::string_view text, const std::string& where) {
  json parsed = detail::parse_json_as<json>(text, where);
  if (!parsed.is_object()) refuse("{}: a JSON object is expected", where);
  return parsed;
}

void check_keys(const json& object, const std::string& where, bool with_prompt) {
  for (const auto& [key, value] : object.items())
    if (!is_in(option_keys, key) && !is_in(constraint_keys, key) && !(with_prompt && is_in(prompt_keys, key)))
      refuse("{}: unknown key \"{}\": {}, {}{} are known", where, key.substr(0, 64), fmt::join(option_keys, ", "),
             fmt::join(constraint_keys, ", "), with_prompt ? ", prompt, messages, tokens, custom_id" : "");
}

template <class T>
void set_if(T& to, const std::optional<T>& value) {
  if (value) to = *value;
}

std::int32_t to_int32(std::int64_t value, std::string_view key, const std::string& where) {
  if (value < INT32_MIN || value > INT32_MAX) refuse("{}: \"{}\" is {}: too large", where, key, value);
  return static_cast<std::int32_t>(value);
}

void set_if(std::int32_t& to, const fields& from, std::string_view key) {
  if (const auto value = from.integer(key)) to = to_int32(*value, key, from.where());
}

std::uint64_t seed_of(const json& value, const std::string& where) {
  if (value.is_number_unsigned()) return value.get<std::uint64_t>();
  refuse("{}: \"seed\" is no whole number from 0 to 2^64-1", where);
}

std::vector<token_id> tokens_of(const json& value, std::string_view key, const std::string& where) {
  if (!value.is_array()) refuse("{}: \"{}\" is no list of tokens", where, key);
  std::vector<token_id> tokens;
  for (const json& each : value) {
    const auto token = detail::to_integer(each);
    if (!token) refuse("{}: \"{}\" is no list of tokens", where, key);
    tokens.push_back(to_int32(*token, key, where));
  }
  return tokens;
}

std::vector<std::string> stops_of(const fields& from) {
  if (from.find("stop")->is_string()) return {*from.text("stop")};
  return *from.texts("stop");
}

/// {"42": -5}
std::vector<token_bias> biases_of(const json& value, const std::string& where) {
  if (!value.is_object()) refuse("{}: \"logit_bias\" is no object like {{\"42\": -5}}", where);
  std::vector<token_bias> biases;
  for (const auto& [key, bias] : value.items()) {
    token_id token = 0;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (fault != std::errc{} || end != key.data() + key.size() || !bias.is_number())
      refuse("{}: \"logit_bias\" is no object like {{\"42\": -5}}", where);
    biases.push_back({token, bias.get<double>()});
  }
  return biases;
}

void read_sampling(const fields& from, sampling_params& to) {
  set_if(to.max_tokens, from.integer("max_tokens"));
  set_if(to.temperature, from.number("temperature"));
  set_if(to.top_k, from, "top_k");
  set_if(to.top_p, from.number("top_p"));
  set_if(to.min_p, from.number("min_p"));
  set_if(to.repetition_penalty, from.number("repetition_penalty"));
  set_if(to.presence_penalty, from.number("presence_penalty"));
  set_if(to.frequency_penalty, from.number("frequency_penalty"));
  set_if(to.ignore_eos, from.boolean("ignore_eos"));
  if (from.has("logprobs")) set_if(to.logprobs.emplace(), from, "logprobs");
  if (from.has("seed")) to.seed = seed_of(*from.find("seed"), from.where());
  if (from.has("stop")) to.stop = stops_of(from);
  if (from.has("stop_tokens")) to.stop_tokens = tokens_of(*from.find("stop_tokens"), "stop_tokens", from.where());
  if (from.has("logit_bias")) to.logit_bias = biases_of(*from.find("logit_bias"), from.where());
}

void read_options(const json& object, const std::string& where, batch_line& to) {
  const fields from(object, where);
  set_if(to.adapter, from.text("adapter"));
  read_sampling(from, to.sampling);
  if (output_constraint form = read_constraint(object)) to.sampling.constraint = std::move(form);
}

batch_line with_options(std::string_view options) {
  batch_line line;
  line.sampling.temperature = 0;
  line.sampling.max_tokens = 128;
  if (options.empty()) return line;
  const json object = parse_object(options, "options");
  check_keys(object, "options", false);
  read_options(object, "options", line);
  return line;
}

json id_as_json(const std::string& custom_id) {
  return custom_id.empty() ? json(nullptr) : json::parse(custom_id, nullptr, false);
}

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string id_text(const json& custom_id) {
  if (!custom_id.is_string() && !custom_id.is_number()) refuse("line: \"custom_id\" is neither a text nor a number");
  return dump(custom_id);
}

}  // namespace

batch_line read_batch_line(std::string_view text, std::string_view options) {
  batch_line line = with_options(options);
  const json object = parse_object(text, "line");
  check_keys(object, "line", true);
  read_options(object, "line", line);
  const fields from(object, "line");
  line.prompt.text = from.text("prompt");
  if (from.has("tokens")) line.prompt.tokens = tokens_of(*from.find("tokens"), "tokens", "line");
  if (from.has("messages")) line.prompt.messages = from.find("messages")->dump();
  if (from.has("custom_id")) line.custom_id = id_text(*from.find("custom_id"));
  return line;
}

void check_batch_options(std::string_view options) {
  const batch_line line = with_options(options);
  check(line.sampling, INT32_MAX);
}

std::string custom_id_of(std::string_view line) {
  try {
    const json object = parse_object(line, "line");
    return object.contains("custom_id") ? id_text(object["custom_id"]) : std::string();
  } catch (const input_error&) {
    return {};
  }
}

std::string answer_line(std::uint64_t index, const std::string& custom_id, const answer_part& answer) {
  json line{{"index", index}, {"custom_id", id_as_json(custom_id)}, {"text", answer.text}, {"tokens", answer.tokens}};
  line["finish_reason"] = answer.end ? answer.end->finish : "";
  if (answer.end) line["prompt_tokens"] = answer.end->prompt_tokens;
  line["adapter"] = answer.end && !answer.end->adapter.empty() ? json(answer.end->adapter) : json(nullptr);
  if (!answer.details.empty()) {
    auto& logprobs = line["logprobs"] = json::array();
    for (const sampled_token& each : answer.details) logprobs.push_back(each.logprob.value_or(0.0f));
  }
  return dump(line);
}

std::string error_line(std::uint64_t index, const std::string& custom_id, std::string_view error) {
  return dump(json{{"index", index}, {"custom_id", id_as_json(custom_id)}, {"error", error}});
}

}  // namespace troupe
