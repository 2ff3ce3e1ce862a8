#include "actors/requests/sampling_fields.hpp"

#include <algorithm>

#include "actors/requests/constraint_fields.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "base/number_in.hpp"

namespace troupe {
namespace {

std::vector<std::string> stops_of(const json& value) {
  if (value.is_string()) return {value.get<std::string>()};
  const bool texts =
      value.is_array() && std::all_of(value.begin(), value.end(), [](const json& each) { return each.is_string(); });
  if (!texts) request_fields::refuse_type("stop", "a text or a list of texts");
  return value.get<std::vector<std::string>>();
}

/// Like {"42": -5}.
std::vector<token_bias> biases_of(const json& object) {
  std::vector<token_bias> biases;
  for (const auto& [key, bias] : object.items()) {
    const auto token = number_in<token_id>(key);
    if (!token || !bias.is_number()) request_fields::refuse_type("logit_bias", "an object like {\"42\": -5}");
    biases.push_back({*token, bias.get<double>()});
  }
  return biases;
}

void add_constraint(json& to, const output_constraint& form) {
  if (form.kind == constraint_kind::json_schema) to["guided_json"] = json::parse(form.text);
  if (form.kind == constraint_kind::regex) to["guided_regex"] = form.text;
  if (form.kind == constraint_kind::grammar) to["guided_grammar"] = form.text;
}

}  // namespace

std::optional<std::uint64_t> seed_of(const request_fields& from) {
  const json* value = from.find("seed");
  if (!value) return std::nullopt;
  if (value->is_number_unsigned()) return value->get<std::uint64_t>();
  const auto number = detail::to_integer(*value);
  if (!number) request_fields::refuse_type("seed", "a whole number");
  if (*number == -1) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

void read_sampling(const request_fields& from, sampling_params& to) {
  set_if(to.temperature, from.number("temperature"));
  if (const auto k = from.small("top_k", -1)) to.top_k = std::max(*k, 0);
  set_if(to.top_p, from.number("top_p"));
  if (to.top_p == 0.0) {  // the smallest nucleus is the most likely token
    to.top_p = 1.0;
    to.top_k = 1;
  }
  set_if(to.min_p, from.number("min_p"));
  set_if(to.repetition_penalty, from.number("repetition_penalty"));
  set_if(to.presence_penalty, from.number("presence_penalty"));
  set_if(to.frequency_penalty, from.number("frequency_penalty"));
  for (const char* key : {"ignore_eos", "ignore_eos_token"}) set_if(to.ignore_eos, from.boolean(key));
  if (const json* biases = from.object("logit_bias")) to.logit_bias = biases_of(*biases);
  set_if(to.seed, seed_of(from));
  if (const json* stop = from.find("stop")) to.stop = stops_of(*stop);
  for (const char* key : {"min_tokens", "min_new_tokens"})
    set_if(to.min_tokens, from.integer(key, INT64_MIN, INT64_MAX));
  for (const char* key : {"stop_tokens", "stop_token_ids"}) set_if(to.stop_tokens, from.tokens(key));
  if (output_constraint form = read_constraint(from)) to.constraint = std::move(form);
}

json json_of(const sampling_params& params) {
  json made{{"max_tokens", params.max_tokens},
            {"temperature", params.temperature},
            {"top_k", params.top_k},
            {"top_p", params.top_p},
            {"min_p", params.min_p},
            {"repetition_penalty", params.repetition_penalty},
            {"presence_penalty", params.presence_penalty},
            {"frequency_penalty", params.frequency_penalty},
            {"seed", params.seed},
            {"ignore_eos", params.ignore_eos},
            {"stop", params.stop},
            {"stop_tokens", params.stop_tokens}};
  if (params.min_tokens != 0) made["min_tokens"] = params.min_tokens;
  if (params.logprobs) made["logprobs"] = *params.logprobs;
  add_constraint(made, params.constraint);
  auto& biases = made["logit_bias"] = json::object();
  for (const auto& [token, bias] : params.logit_bias) biases[std::to_string(token)] = bias;
  return made;
}

}  // namespace troupe
