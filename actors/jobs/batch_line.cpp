#include "actors/jobs/batch_line.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "actors/requests/constraint_fields.hpp"
#include "actors/requests/own_logprobs_json.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "actors/requests/sampling_fields.hpp"
#include "base/edit_distance.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 2> most_tokens_keys{"max_tokens", "max_completion_tokens"};
constexpr std::array<std::string_view, 17> option_keys{
    "adapter",          "max_tokens",        "temperature",          "top_k", "top_p",    "min_p", "repetition_penalty",
    "presence_penalty", "frequency_penalty", "logit_bias",           "seed",  "logprobs", "stop",  "stop_tokens",
    "ignore_eos",       "min_tokens",        "max_completion_tokens"};
constexpr std::array<std::string_view, 4> prompt_keys{"prompt", "messages", "tokens", "custom_id"};
constexpr std::array<std::string_view, 2> term_keys{"endpoint", "weight"};

std::vector<std::string_view> known_keys(std::span<const std::string_view> last) {
  std::vector<std::string_view> all(option_keys.begin(), option_keys.end());
  all.insert(all.end(), constraint_keys.begin(), constraint_keys.end());
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

[[noreturn]] void refuse_key(std::string_view key, const std::vector<std::string_view>& known) {
  if (const std::string_view meant = nearest(key, known); !meant.empty())
    refuse("unknown key \"{}\": did you mean \"{}\"?", key, meant);
  refuse("unknown key \"{}\": {} are known", key.substr(0, 64), fmt::join(known, ", "));
}

void check_keys(const json& object, bool is_line) {
  static const auto of_lines = known_keys(prompt_keys), of_options = known_keys(term_keys);
  if (is_line && object.contains("body"))
    refuse("a line with \"body\" is one of OpenAI's batches: upload the file and create a batch, at /v1/batches");
  if (object.contains("model"))
    refuse("\"model\" is called \"adapter\" here: name one, or leave it out for the model itself");
  const auto& known = is_line ? of_lines : of_options;
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end()) refuse_key(key, known);
}

/// Adds the place to the text of an error.
template <class Read>
auto read_at(const char* place, const Read& read) {
  try {
    return read();
  } catch (const input_error& error) {
    refuse("{}: {}", place, error.what());
  }
}

void read_options(const request_fields& from, std::uint64_t drawn_seed, answer_order& to) {
  if (auto adapter = from.text("adapter")) to.adapter = std::move(*adapter);
  for (const std::string_view key : most_tokens_keys)
    if (const auto most = from.integer(key, INT64_MIN, INT64_MAX)) to.sampling.max_tokens = *most;
  if (const auto told = from.small("logprobs")) to.sampling.logprobs = told;
  read_sampling(from, to.sampling);
  if (from.find("seed") && !seed_of(from)) to.sampling.seed = drawn_seed;
}

answer_order order_with(const json& options, std::uint64_t drawn_seed) {
  answer_order order;
  order.sampling.temperature = 0;
  order.sampling.max_tokens = 128;
  check_keys(options, false);
  read_options(request_fields(options), drawn_seed, order);
  return order;
}

json parse_options(std::string_view options) {
  return options.empty() ? json::object() : parse_object(options, "options");
}

std::string id_text(const json& custom_id) {
  if (custom_id.is_string()) return custom_id_text(custom_id.get_ref<const std::string&>());
  if (!custom_id.is_number()) refuse_field("custom_id", "custom_id is neither a text nor a number");
  return dump(custom_id);
}

prompt_input read_prompt(const request_fields& from) {
  prompt_input prompt;
  prompt.text = from.text("prompt");
  prompt.tokens = from.tokens("tokens").value_or(std::vector<token_id>());
  if (const json* messages = from.find("messages")) prompt.chat = {.messages = messages->dump()};
  return prompt;
}

class own_line_format final : public answer_format {
 public:
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    const answer_choice& answer = choices.front();
    json made{{"text", answer.text},
              {"tokens", answer.tokens},
              {"finish_reason", answer.end.finish},
              {"prompt_tokens", usage.prompt_tokens},
              {"adapter", answer.end.adapter.empty() ? json(nullptr) : json(answer.end.adapter)}};
    if (!answer.details.empty()) made["logprobs"] = own_logprobs_json(answer.details);
    return dump(made);
  }
};

}  // namespace

batch_terms read_batch_terms(std::string_view options) {
  const json parsed = parse_options(options);
  const request_fields from(parsed);
  return read_at("options", [&] {
    check(order_with(parsed, 0).sampling, INT32_MAX);
    const auto weight = from.integer("weight", 1, most_weight).value_or(1);
    return batch_terms{from.text("endpoint").value_or(""), static_cast<std::uint64_t>(weight)};
  });
}

batch_line read_batch_line(std::string_view text, std::string_view options, std::uint64_t drawn_seed) {
  batch_line line;
  line.asked.format = std::make_unique<own_line_format>();
  const json common = parse_options(options), object = parse_object(text, "the line");
  line.asked.order = read_at("options", [&] { return order_with(common, drawn_seed); });
  const request_fields from(object);
  check_keys(object, true);
  read_options(from, drawn_seed, line.asked.order);
  line.asked.order.prompts.push_back(read_prompt(from));
  if (const json* custom_id = from.find("custom_id")) line.custom_id = id_text(*custom_id);
  return line;
}

std::string custom_id_text(const std::string& custom_id) {
  constexpr std::size_t most_bytes = 512;
  if (custom_id.size() > most_bytes)
    refuse_field("custom_id", fmt::format("custom_id has {} bytes: use at most {}", custom_id.size(), most_bytes));
  return dump(custom_id);
}

std::string custom_id_of(std::string_view line) {
  try {
    const json object = parse_object(line, "line");
    return object.contains("custom_id") ? id_text(object["custom_id"]) : std::string();
  } catch (const input_error&) {
    return {};
  }
}

std::string answer_line(std::uint64_t index, const std::string& custom_id, std::string_view whole) {
  return fmt::format(R"({{"index":{},"custom_id":{},{})", index, custom_id.empty() ? "null" : custom_id,
                     whole.substr(1));
}

std::string error_line(std::uint64_t index, const std::string& custom_id, std::string_view error,
                       std::string_view code) {
  json made{{"error", error}};
  if (!code.empty()) made["code"] = code;
  return answer_line(index, custom_id, dump(made));
}

}  // namespace troupe
