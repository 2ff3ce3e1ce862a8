#include "actors/http/batch_lines.hpp"

#include <ctime>
#include <set>

#include "actors/batch_line.hpp"
#include "actors/constraint_fields.hpp"
#include "actors/http/answer_request.hpp"
#include "actors/http/api_fields_impl.hpp"
#include "actors/http/chat_messages.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_lines = 100'000;

/// Names that a job's line has too.
constexpr const char* same_names[] = {"presence_penalty", "frequency_penalty", "logit_bias", "ignore_eos"};

void copy_sampling(const api_fields& from, const answer_order& order, json& line) {
  for (const std::string_view name : constraint_keys)
    if (const json* value = from.find(name)) line[std::string(name)] = *value;
  for (const char* name : same_names)
    if (const json* value = from.find(name)) line[name] = *value;
  if (order.sampling.top_k > 0) line["top_k"] = order.sampling.top_k;
  if (from.has("seed")) line["seed"] = order.sampling.seed;
  if (!order.sampling.stop.empty()) line["stop"] = order.sampling.stop;
  if (!order.sampling.stop_tokens.empty()) line["stop_tokens"] = order.sampling.stop_tokens;
  line["temperature"] = order.sampling.temperature;
  line["top_p"] = order.sampling.top_p;
  line["min_p"] = order.sampling.min_p;
  line["repetition_penalty"] = order.sampling.repetition_penalty;
  if (!order.adapter.empty()) line["adapter"] = order.adapter;
}

json line_of_chat(const api_fields& from) {
  const prompt_input chat = read_chat(from);
  if (!chat.tools.empty()) refuse_field("tools", "tools are not served in batches: leave them out");
  json line{{"messages", json::parse(chat.messages)}};
  auto most = from.integer("max_completion_tokens", 1, INT32_MAX);
  if (!most) most = from.integer("max_tokens", 1, INT32_MAX);
  line["max_tokens"] = most.value_or(INT32_MAX);
  return line;
}

json line_of_completion(const api_fields& from) {
  json line;
  const json* prompt = from.find("prompt");
  if (!prompt || !(prompt->is_string() || prompt->is_array()))
    refuse_field("prompt", "prompt should be one text or one list of tokens in a batch");
  line[prompt->is_string() ? "prompt" : "tokens"] = *prompt;
  line["max_tokens"] = from.integer("max_tokens", 1, INT32_MAX).value_or(16);
  return line;
}

std::string job_line_of(std::string_view text, const std::string& endpoint, const api_context& context,
                        std::set<std::string>& ids) {
  const json object = parse_body(text);
  const api_fields fields(object);
  const std::string custom_id = fields.required_text("custom_id");
  if (!ids.insert(custom_id).second) refuse_field("custom_id", "custom_id " + custom_id.substr(0, 64) + " comes twice");
  if (fields.text("method").value_or("POST") != "POST") refuse_field("method", "method should be POST");
  if (fields.required_text("url") != endpoint) refuse_field("url", "url should be the batch's endpoint, " + endpoint);
  const json* body = fields.object("body");
  if (!body) refuse_field("body", "body is missing", "missing_required_parameter");
  const api_fields from(*body);
  const answer_order order = read_order(from, context, {});
  if (order.n != 1) refuse_field("n", "n is 1 in batches");
  if (order.stream) refuse_field("stream", "stream is not served in batches");
  for (const char* name : {"logprobs", "echo"})
    if (const json* value = from.find(name); value && *value != false && !value->is_null())
      refuse_field(name, fmt::format("{} is not served in batches: leave it out", name));
  json line = endpoint == "/v1/chat/completions" ? line_of_chat(from) : line_of_completion(from);
  line["custom_id"] = custom_id;
  copy_sampling(from, order, line);
  std::string made = dump(line);
  try {
    (void)read_batch_line(made, "{}");
  } catch (const input_error& error) {
    throw api_error(400, error.what());
  }
  return made;
}

json answer_body(const json& output, const std::string& batch, const std::string& endpoint, const std::string& model) {
  const bool chat = endpoint == "/v1/chat/completions";
  json choice{{"index", 0}};
  if (chat)
    choice["message"] = {{"role", "assistant"}, {"content", output.value("text", "")}, {"refusal", nullptr}};
  else
    choice["text"] = output.value("text", "");
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = output.value("finish_reason", "stop");
  const auto tokens = output.contains("tokens") ? output["tokens"].size() : 0;
  const auto prompt = output.value("prompt_tokens", std::int64_t{0});
  const auto adapter = output.find("adapter");
  return {{"id", fmt::format("{}-{}-{}", chat ? "chatcmpl" : "cmpl", batch, output.value("index", 0))},
          {"object", chat ? "chat.completion" : "text_completion"},
          {"created", std::time(nullptr)},
          {"model", adapter != output.end() && adapter->is_string() ? adapter->get<std::string>() : model},
          {"choices", json::array({choice})},
          {"usage",
           {{"prompt_tokens", prompt},
            {"completion_tokens", tokens},
            {"total_tokens", prompt + static_cast<std::int64_t>(tokens)}}}};
}

}  // namespace

std::vector<std::string> job_lines_of(std::string_view file, const std::string& endpoint, const api_context& context) {
  std::vector<std::string> lines;
  std::set<std::string> ids;
  std::size_t number = 0;
  while (!file.empty()) {
    std::string_view text = file.substr(0, file.find('\n'));
    file.remove_prefix(std::min(text.size() + 1, file.size()));
    ++number;
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    if (lines.size() == most_lines) throw api_error(400, fmt::format("the file has more than {} lines", most_lines));
    try {
      lines.push_back(job_line_of(text, endpoint, context, ids));
    } catch (const api_error& error) {
      throw api_error(400, fmt::format("line {} of the file: {}", number, error.what()), error.param(), error.code());
    }
  }
  if (lines.empty()) throw api_error(400, "the file has no lines", "input_file_id");
  return lines;
}

std::string batch_output_line(const std::string& output, const std::string& batch, const std::string& endpoint,
                              const std::string& model) {
  const json parsed = json::parse(output, nullptr, false);
  if (!parsed.is_object()) return "{}";
  json line{{"id", fmt::format("batch_req_{}_{}", batch, parsed.value("index", 0))},
            {"custom_id", parsed.contains("custom_id") ? parsed["custom_id"] : json(nullptr)},
            {"response", nullptr},
            {"error", nullptr}};
  if (parsed.contains("error"))
    line["error"] = {{"code", "line_failed"}, {"message", parsed["error"]}};
  else
    line["response"] = {
        {"status_code", 200}, {"request_id", line["id"]}, {"body", answer_body(parsed, batch, endpoint, model)}};
  return dump(line);
}

}  // namespace troupe
