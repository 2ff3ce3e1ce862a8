#include "actors/http/answers/answer_text.hpp"

#include <cmath>

#include <fmt/format.h>

#include "actors/http/json_text.hpp"
#include "actors/json_dump_impl.hpp"
#include "base/utf8.hpp"

namespace troupe {
namespace {

constexpr double impossible = -9999.0;

json described_place(const tokenizer& tokens, const sampled_token& given, std::int32_t most) {
  if (!given.logprob) return nullptr;  // the first token, which has none before it
  json place = json::object();
  const auto add = [&](token_id token, float logprob, std::int32_t rank) {
    place[fmt::format("{}", token)] = {
        {"logprob", finite_logprob(logprob)}, {"rank", rank}, {"decoded_token", token_text(tokens, token)}};
  };
  add(given.token, *given.logprob, given.rank);
  std::int32_t rank = 0;
  for (const token_logprob& each : given.alternatives) {
    if (++rank > most) break;
    if (each.token != given.token) add(each.token, each.logprob, rank);
  }
  return place;
}

json described_token(const tokenizer& tokens, token_id token, float logprob) {
  const std::string text = token_text(tokens, token);
  auto bytes = json::array();
  for (const unsigned char byte : text) bytes.push_back(byte);
  return {{"token", text}, {"logprob", finite_logprob(logprob)}, {"bytes", std::move(bytes)}};
}

}  // namespace

std::string usage_json(const answer_usage& usage) {
  return fmt::format(
      R"({{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}{}}})",
      usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens + usage.completion_tokens, usage.cached_tokens,
      usage.thought_tokens == 0
          ? ""
          : fmt::format(R"(,"completion_tokens_details":{{"reasoning_tokens":{}}})", usage.thought_tokens));
}

std::string_view frame_end(const answer_order& order) {
  return order.include_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
}

std::string usage_frame(std::string_view head, const answer_usage& usage) {
  return fmt::format("data: {}],\"usage\":{}}}\n\n", head, usage_json(usage));
}

std::string before_choices(const std::string& model, const std::string& adapter) {
  return R"(,"system_fingerprint":)" + json_text(adapter.empty() ? model : adapter) + R"(,"choices":[)";
}

std::string finish_json(const std::string& finish, const stop_reason& stopped_by) {
  const std::string reason = stopped_by.text    ? json_text(*stopped_by.text)
                             : stopped_by.token ? fmt::format("{}", *stopped_by.token)
                                                : "null";
  return fmt::format(R"({},"stop_reason":{})", json_text(finish), reason);
}

std::int64_t token_count(const tokenizer& tokens, std::string_view text) {
  return static_cast<std::int64_t>(tokens.encode(text, {.add_special = false}).size());
}

std::string token_text(const tokenizer& tokens, token_id token) {
  return std::string(tokens.bytes_of(token));
}

std::string completion_token(const std::string& text) {
  if (is_utf8(text)) return text;
  std::string name = "bytes:";
  for (const unsigned char byte : text) fmt::format_to(std::back_inserter(name), "\\x{:02x}", byte);
  return name;
}

std::string token_ids_json(std::span<const token_id> tokens, const std::optional<sampled_token>& ending) {
  const std::string comma = tokens.empty() || !ending ? "" : ",";
  return fmt::format("[{}{}]", fmt::join(tokens, ","), ending ? comma + std::to_string(ending->token) : "");
}

double finite_logprob(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : impossible;
}

std::string token_logprobs_json(const tokenizer& tokens, const std::vector<sampled_token>& details) {
  auto content = json::array();
  for (const sampled_token& each : details) {
    json entry = described_token(tokens, each.token, each.logprob.value_or(-INFINITY));
    entry["top_logprobs"] = json::array();
    for (const token_logprob& other : each.alternatives)
      entry["top_logprobs"].push_back(described_token(tokens, other.token, other.logprob));
    content.push_back(std::move(entry));
  }
  return dump(content);
}

std::string prompt_logprobs_json(const tokenizer& tokens, const std::vector<sampled_token>& scored, std::int32_t most) {
  auto places = json::array();
  for (const sampled_token& each : scored) places.push_back(described_place(tokens, each, most));
  return dump(places);
}

}  // namespace troupe
