#include <array>

#include "actors/http/lorax/generate_input_impl.hpp"

namespace troupe {
namespace {

/// Fields that completions have as well.
constexpr std::array shared{"stop",
                            "seed",
                            "top_k",
                            "top_p",
                            "typical_p",
                            "repetition_penalty",
                            "best_of",
                            "frequency_penalty",
                            "presence_penalty",
                            "adapter_id",
                            "ignore_eos_token",
                            "response_format"};

/// Where they ask for something.
constexpr std::array unserved{"merged_adapters", "watermark", "adapter_parameters", "apply_chat_template",
                              "top_n_tokens"};

const json& parameters_of(const request_fields& from) {
  static const json none = json::object();
  const json* parameters = from.object("parameters");
  return parameters ? *parameters : none;
}

void refuse_unserved_here(const json& parameters) {
  for (const char* name : unserved)
    if (const auto value = parameters.find(name);
        value != parameters.end() && !value->is_null() && *value != false && *value != 0)
      refuse_field(name, fmt::format("{} is not served here: leave it out", name), "unsupported_parameter");
}

/// As in LoRAX and TGI: where nothing asks for other tokens, the likeliest are meant.
bool samples(const request_fields& parameters) {
  const double temperature = parameters.number("temperature").value_or(1);
  return parameters.boolean("do_sample").value_or(false) || (temperature != 1 && temperature != 0) ||
         parameters.small("top_k").value_or(0) != 0 || parameters.number("top_p").value_or(1) < 1;
}

/// TGI's {"type": "json" or "regex", "value"}.
void add_grammar(const json& grammar, json& completion) {
  const request_fields from(grammar);
  const auto type = from.text("type");
  const json* value = from.find("value");
  if (!value || (type != "json" && type != "regex"))
    refuse_field("grammar", R"(grammar should be {"type": "json" or "regex", "value": …})");
  completion[type == "json" ? "guided_json" : "guided_regex"] = *value;
}

}  // namespace

generation_wishes read_wishes(const request_fields& from) {
  const request_fields wished(parameters_of(from));
  return {.details = wished.boolean("details").value_or(false),
          .prompt_details = wished.boolean("decoder_input_details").value_or(false),
          .full_text = wished.boolean("return_full_text").value_or(false),
          .alternatives = wished.small("return_k_alternatives", 0, 100).value_or(0)};
}

json completion_of_generation(const request_fields& from, bool stream) {
  const auto inputs = from.text("inputs");
  if (!inputs) request_fields::refuse_missing("inputs");
  const json& given = parameters_of(from);
  const request_fields parameters(given);
  refuse_unserved_here(given);
  json completion{{"prompt", *inputs}, {"stream", stream}, {"include_stop_str_in_output", true}};
  for (const char* key : shared)
    if (const json* value = parameters.find(key)) completion[key] = *value;
  if (const json* tokens = parameters.find("truncate")) completion["truncate_prompt_tokens"] = *tokens;
  completion["max_tokens"] = parameters.integer("max_new_tokens", 1, INT64_MAX).value_or(-1);
  completion["temperature"] = samples(parameters) ? parameters.number("temperature").value_or(1.0) : 0.0;
  if (const json* grammar = parameters.object("grammar")) add_grammar(*grammar, completion);
  return completion;
}

}  // namespace troupe
