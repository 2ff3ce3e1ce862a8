#include "actors/http/answer_request.hpp"

#include <array>
#include <charconv>
#include <functional>
#include <random>

#include "actors/constraint_fields.hpp"
#include "actors/http/api_fields_impl.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_prompts = 1024;

constexpr std::array<std::string_view, 8> unserved{
    "suffix",        "prompt_logprobs",        "min_tokens",        "audio", "functions",
    "function_call", "truncate_prompt_tokens", "web_search_options"};

template <class T>
void set_if(T& to, const std::optional<T>& value) {
  if (value) to = *value;
}

std::vector<std::string> stops_of(const api_fields& from) {
  const json* value = from.find("stop");
  if (!value) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) api_fields::refuse_type("stop", "a text or a list of texts");
  std::vector<std::string> stops;
  for (const json& each : *value) {
    if (!each.is_string()) api_fields::refuse_type("stop", "a text or a list of texts");
    stops.push_back(each.get<std::string>());
  }
  return stops;
}

std::vector<token_id> tokens_of(const api_fields& from, std::string_view key) {
  std::vector<token_id> tokens;
  const json* list = from.list(key);
  if (!list) return tokens;
  for (const json& each : *list) {
    const auto token = detail::to_integer(each);
    if (!token || *token < 0 || *token > INT32_MAX) api_fields::refuse_type(key, "a list of tokens");
    tokens.push_back(static_cast<token_id>(*token));
  }
  return tokens;
}

std::vector<token_bias> biases_of(const api_fields& from) {
  std::vector<token_bias> biases;
  const json* object = from.object("logit_bias");
  if (!object) return biases;
  for (const auto& [key, bias] : object->items()) {
    token_id token = 0;
    const auto [end, fault] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (fault != std::errc{} || end != key.data() + key.size() || !bias.is_number())
      api_fields::refuse_type("logit_bias", "an object like {\"42\": -5}");
    biases.push_back({token, bias.get<double>()});
  }
  return biases;
}

std::uint64_t seed_of(const api_fields& from) {
  const json* value = from.find("seed");
  if (value && !value->is_number_integer()) api_fields::refuse_type("seed", "a whole number");
  if (value && value->is_number_unsigned()) return value->get<std::uint64_t>();
  if (value) return static_cast<std::uint64_t>(value->get<std::int64_t>());
  static thread_local std::mt19937_64 random{std::random_device()()};
  return random();
}

output_constraint constraint_of(const api_fields& from) {
  try {
    return read_constraint(from.object());
  } catch (const input_error& error) {
    const std::string text = error.what();
    refuse_field(text.substr(0, text.find_first_of(". ")), text, "unsupported_value");
  }
}

void take_advice(const sampling_advice& advice, sampling_params& to) {
  set_if(to.temperature, advice.temperature);
  set_if(to.top_k, advice.top_k);
  set_if(to.top_p, advice.top_p);
  set_if(to.min_p, advice.min_p);
  set_if(to.repetition_penalty, advice.repetition_penalty);
}

void read_sampling(const api_fields& from, sampling_params& to) {
  set_if(to.temperature, from.number("temperature"));
  if (const auto k = from.small("top_k", -1)) to.top_k = *k < 0 ? 0 : *k;
  set_if(to.top_p, from.number("top_p"));
  set_if(to.min_p, from.number("min_p"));
  set_if(to.repetition_penalty, from.number("repetition_penalty"));
  set_if(to.presence_penalty, from.number("presence_penalty"));
  set_if(to.frequency_penalty, from.number("frequency_penalty"));
  set_if(to.ignore_eos, from.boolean("ignore_eos"));
  to.logit_bias = biases_of(from);
  to.seed = seed_of(from);
  to.stop = stops_of(from);
  to.stop_tokens = tokens_of(from, "stop_token_ids");
  to.constraint = constraint_of(from);
}

/// LoRAX's adapter_id stands for itself; "base" and "" there mean none.
std::string adapter_of(const api_fields& from, const api_context& context) {
  std::optional<std::string> named = from.text("adapter_id");
  const char* key = "adapter_id";
  if (const json* parameters = from.object("parameters"); parameters && !named)
    named = api_fields(*parameters).text("adapter_id");
  if (!named) {
    named = from.text("model");
    key = "model";
  }
  if (!named || named->empty() || *named == context.parts.model) return {};
  if (named->size() > 512 || named->find('\0') != named->npos)
    throw api_error(404, "the model does not exist: see /v1/models", key, "model_not_found");
  context.check_model(*named);
  return *named;
}

void read_stream(const api_fields& from, answer_order& to) {
  to.stream = from.boolean("stream").value_or(false);
  const json* options = from.object("stream_options");
  if (options && !to.stream) refuse_field("stream_options", "stream_options needs stream = true");
  if (options) to.include_usage = api_fields(*options).boolean("include_usage").value_or(false);
}

[[noreturn]] void refuse_prompts(std::string_view key) {
  refuse_field(key, fmt::format("{} should be a text, a list of texts, or lists of tokens", key), "invalid_type");
}

prompt_input prompt_of_list(const json& list, std::string_view key) {
  prompt_input input;
  for (const json& each : list) {
    const auto token = detail::to_integer(each);
    if (!token || *token < 0 || *token > INT32_MAX) refuse_prompts(key);
    input.tokens.push_back(static_cast<token_id>(*token));
  }
  if (input.tokens.empty()) refuse_field(key, fmt::format("{} has a list without tokens", key));
  return input;
}

prompt_input prompt_of(const json& value, std::string_view key) {
  if (value.is_array()) return prompt_of_list(value, key);
  if (!value.is_string()) refuse_prompts(key);
  prompt_input input;
  input.text = value.get<std::string>();
  return input;
}

}  // namespace

std::vector<prompt_input> read_prompts(const api_fields& from, std::string_view key) {
  const json* prompt = from.find(key);
  if (!prompt) refuse_field(key, fmt::format("{} is missing", key), "missing_required_parameter");
  if (!prompt->is_string() && (!prompt->is_array() || prompt->empty())) refuse_prompts(key);
  if (prompt->is_string() || (*prompt)[0].is_number()) return {prompt_of(*prompt, key)};
  if (prompt->size() > most_prompts)
    refuse_field(key, fmt::format("{} has {} prompts: use at most {}", key, prompt->size(), most_prompts));
  std::vector<prompt_input> prompts;
  for (const json& each : *prompt) prompts.push_back(prompt_of(each, key));
  return prompts;
}

void refuse_unserved(const api_fields& from) {
  for (const std::string_view name : unserved)
    if (from.has(name))
      refuse_field(name, fmt::format("{} is not served here: leave it out", name), "unsupported_parameter");
  if (from.boolean("use_beam_search").value_or(false))
    refuse_field("use_beam_search", "use_beam_search is not served here: leave it out", "unsupported_parameter");
}

answer_order read_order(const api_fields& from, const api_context& context, const std::string& owner) {
  refuse_unserved(from);
  answer_order order;
  order.adapter = adapter_of(from, context);
  order.model = order.adapter.empty() ? context.parts.model : order.adapter;
  order.n = from.small("n", 1, 128).value_or(1);
  if (const auto best = from.small("best_of"); best && *best != order.n)
    refuse_field("best_of", "best_of is served only where it is n", "unsupported_value");
  if (from.integer("priority", INT64_MIN, INT64_MAX).value_or(0) > 0) order.priority = request_priority::batch;
  order.owner = owner;
  order.tenant = tenant_id(owner.empty() ? 0 : std::hash<std::string>()(owner));
  take_advice(context.parts.advice, order.sampling);
  read_sampling(from, order.sampling);
  read_stream(from, order);
  return order;
}

std::string token_text(const tokenizer& tokens, token_id token) {
  return std::string(tokens.bytes_of(token));
}

}  // namespace troupe
