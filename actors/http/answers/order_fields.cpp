#include "actors/http/answers/order_fields.hpp"

#include <algorithm>

#include "actors/http/api_error.hpp"
#include "actors/requests/constraint_fields.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "actors/requests/sampling_fields.hpp"
#include "base/entropy.hpp"
#include "base/to_size.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_prompts = 2048;  // as OpenAI's specification says
constexpr std::size_t most_answers = 4096;  // to all of them

struct unserved_field {
  std::string_view name;
  std::string_view remedy = "leave it out";
};

/// Fields that are refused by name, since they would change the answer: OpenAI's, vLLM's, SGLang's, llama.cpp's.
constexpr unserved_field unserved[] = {
    {"suffix"},
    {"audio"},
    {"modalities"},
    {"functions"},
    {"function_call"},
    {"web_search_options"},
    {"use_beam_search"},
    {"bad_words"},
    {"allowed_token_ids"},
    {"chat_template"},
    {"add_special_tokens", "a chat's template has them already: leave it out"},
    {"return_tokens_as_token_ids"},
    {"documents", "give them in chat_template_kwargs"},
    {"prompt_embeds"},
    {"logits_processors"},
    {"guided_whitespace_pattern"},
    {"stop_regex"},
    {"no_stop_trim", "use include_stop_str_in_output"},
    {"custom_logit_processor"},
    {"return_hidden_states"},
    {"lora_path", "name the adapter as the model"},
    {"lora", "name the adapter as the model"},
    {"n_predict", "use max_tokens"},
    {"repeat_penalty", "use repetition_penalty"},
    {"typical_p"},
    {"mirostat"},
    {"dry_multiplier"},
    {"xtc_probability"},
    {"dynatemp_range"},
    {"top_n_sigma"},
    {"adaptive_target"},
    {"samplers"},
    {"min_keep"},
    {"n_indent"},
    {"t_max_predict_ms"},
    {"n_probs", "use logprobs"},
    {"post_sampling_probs"},
    {"return_tokens"},
    {"thinking_token_budget"},
    {"logprob_token_ids"},
    {"repetition_detection"},
    {"separate_reasoning"},
    {"reasoning_format", "use auto or deepseek"},
};

void take_advice(const sampling_advice& advice, sampling_params& to) {
  set_if(to.temperature, advice.temperature);
  set_if(to.top_k, advice.top_k);
  set_if(to.top_p, advice.top_p);
  set_if(to.min_p, advice.min_p);
  set_if(to.repetition_penalty, advice.repetition_penalty);
}

/// What Hugging Face's clients call the model of a server that they know by its address alone: for a chat "dummy".
bool is_no_name(std::string_view model) {
  return model == "tgi" || model == "dummy";
}

/// LoRAX's adapter_id goes before model; the base's names and "" mean no adapter.
std::string adapter_of(const request_fields& from, const served_model& served) {
  std::optional<std::string> named = from.text("adapter_id");
  if (!named) named = from.text("model");
  if (!named || named->empty() || served.is_base(*named)) return {};
  std::string adapter(own_name(*named));
  if (served.adapters->resolve(adapter)) return adapter;
  if (is_no_name(*named)) return {};
  if (!is_adapter_name(adapter)) throw unknown_model(*named);
  return adapter;
}

/// The first field that asks for a form other than text; others, if there are any, ask for the same.
std::string form_field_of(const request_fields& from) {
  for (const std::string_view key : constraint_keys)
    if (const json* value = from.find(key); value && *value != "" && key != "response_format") return std::string(key);
  return "response_format";
}

void read_prompt_logprobs(const request_fields& from, answer_order& to) {
  to.prompt_logprobs = to.sampling.prompt_logprobs = from.small("prompt_logprobs", 0, 100);
  if (to.prompt_logprobs && to.stream)
    refuse_field("prompt_logprobs", "prompt_logprobs does not go with a stream", "unsupported_value");
}

void read_stream(const request_fields& from, answer_order& to) {
  to.stream = from.boolean("stream").value_or(false);
  const json* options = from.object("stream_options");
  if (options && !to.stream) refuse_field("stream_options", "stream_options needs stream = true");
  if (options) to.include_usage = request_fields(*options).boolean("include_usage").value_or(false);
}

/// Whether a value asks for what happens anyway. A chat's template already has the special tokens, and its answers
/// alone have thoughts of their own.
bool has_no_effect(std::string_view name, const json& value, const request_fields& from) {
  if (name == "add_special_tokens") return value == json(false) || !from.has("messages");
  if (name == "modalities") return value == json::array({"text"});
  if (name == "repeat_penalty" || name == "typical_p") return value == json(1);
  if (name == "n_predict" || name == "thinking_token_budget") return value == json(-1);
  if (name == "separate_reasoning") return value == json(true) || !from.has("messages");
  if (name == "reasoning_format") return value == "auto" || value == "deepseek" || !from.has("messages");
  if (name == "adaptive_target") return value.is_number() && value < json(0);
  if ((name == "top_n_sigma" || name == "t_max_predict_ms") && value == json(-1)) return true;
  return value == json(0) || value == json(false) || value == json("") || value == json::array();
}

/// llama.cpp's window, in which a token must be to be penalised: -1 is the whole text, as here.
void check_penalty_window(const request_fields& from, const sampling_params& sampling) {
  const json* window = from.find("repeat_last_n");
  if (window && *window != json(-1) && counts_tokens(sampling))
    refuse_field("repeat_last_n", "repeat_last_n is served only as -1, since penalties look at the whole text",
                 "unsupported_value");
}

[[noreturn]] void refuse_prompts(std::string_view key) {
  refuse_field(key, fmt::format("{} should be a text, a list of texts, or lists of tokens", key), "invalid_type");
}

std::vector<token_id> prompt_tokens(const json& list, const char* key) {
  auto tokens = tokens_in(list);
  if (!tokens) refuse_prompts(key);
  if (tokens->empty()) refuse_field(key, fmt::format("{} has a list without tokens", key));
  return *std::move(tokens);
}

prompt_input prompt_of(const json& value, const char* key, const request_fields& from) {
  prompt_input input{.field = key};
  if (value.is_array())
    input.tokens = prompt_tokens(value, key);
  else if (value.is_string())
    input.text = value.get<std::string>();
  else
    refuse_prompts(key);
  input.add_special = from.boolean("add_special_tokens").value_or(true);
  read_shortening(from, input);
  return input;
}

}  // namespace

void refuse_unserved(const request_fields& from) {
  for (const auto& [name, remedy] : unserved)
    if (const json* value = from.find(name); value && !has_no_effect(name, *value, from))
      refuse_field(name, fmt::format("{} is not served here: {}", name, remedy), "unsupported_parameter");
}

std::optional<std::int64_t> most_tokens_of(const request_fields& from, const char* key, std::int64_t least) {
  if (const json* all = from.find(key); all && *all == json(-1)) return INT32_MAX;
  const auto most = from.integer(key, least, INT64_MAX);
  return most ? std::optional(std::min<std::int64_t>(*most, INT32_MAX)) : std::nullopt;
}

void read_shortening(const request_fields& from, prompt_input& to) {
  to.most_tokens = from.integer("truncate_prompt_tokens", -1, INT32_MAX).value_or(0);
  const std::string cut = from.text("truncation_side").value_or("left");
  if (cut != "left" && cut != "right")
    refuse_field("truncation_side", "truncation_side should be left or right", "unsupported_value");
  to.keeps_first = cut == "right";
}

void read_prompts(const request_fields& from, const char* key, answer_order& order) {
  const json* prompt = from.find(key);
  if (!prompt) request_fields::refuse_missing(key);
  if (!prompt->is_string() && (!prompt->is_array() || prompt->empty())) refuse_prompts(key);
  if (prompt->is_string() || (*prompt)[0].is_number()) return order.prompts.push_back(prompt_of(*prompt, key, from));
  if (prompt->size() > most_prompts)
    refuse_field(key, fmt::format("{} has {} prompts: use at most {}", key, prompt->size(), most_prompts));
  if (prompt->size() * to_size(order.n) > most_answers)
    refuse_field("n", fmt::format("n is {} and goes with {} prompts: {} answers are the most in one request", order.n,
                                  prompt->size(), most_answers));
  for (const json& each : *prompt) order.prompts.push_back(prompt_of(each, key, from));
}

answer_order read_order(const request_fields& from, const served_model& served) {
  refuse_unserved(from);
  answer_order order;
  order.adapter = adapter_of(from, served);
  order.model = order.adapter.empty() ? served.model : order.adapter;
  order.n = from.small("n", 1, 128).value_or(1);
  for (const char* key : {"best_of", "n_cmpl"})
    if (const auto answers = from.small(key); answers && *answers != order.n)
      refuse_field(key, fmt::format("{} is served only where it is n", key), "unsupported_value");
  if (from.integer("priority", INT64_MIN, INT64_MAX).value_or(0) > 0) order.priority = request_priority::batch;
  take_advice(served.advice, order.sampling);
  order.sampling.seed = entropy();
  read_sampling(from, order.sampling);
  check_penalty_window(from, order.sampling);
  order.form_field = form_field_of(from);
  order.skip_special = from.boolean("skip_special_tokens").value_or(true);
  order.token_ids = from.boolean("return_token_ids").value_or(false);
  order.keep_stop = from.boolean("include_stop_str_in_output").value_or(false);
  order.cache_salt = from.text("cache_salt").value_or("");
  read_stream(from, order);
  read_prompt_logprobs(from, order);
  return order;
}

}  // namespace troupe
