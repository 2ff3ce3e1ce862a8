#include "actors/http/completions.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "actors/http/answer_request.hpp"
#include "actors/http/api_fields_impl.hpp"
#include "actors/http/json_text.hpp"

namespace troupe {
namespace {

double finite(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0;
}

std::int64_t characters_of(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; });
}

/// {"tokens","token_logprobs","top_logprobs","text_offset"}; `offset` moves on.
std::string logprobs_json(const tokenizer& tokens, const std::vector<token_id>& ids,
                          const std::vector<sampled_token>& details, std::int64_t& offset) {
  json made{{"tokens", json::array()},
            {"token_logprobs", json::array()},
            {"top_logprobs", json::array()},
            {"text_offset", json::array()}};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string text = token_text(tokens, ids[i]);
    made["tokens"].push_back(text);
    made["text_offset"].push_back(offset);
    offset += characters_of(text);
    const bool known = i < details.size() && details[i].logprob;
    made["token_logprobs"].push_back(known ? json(finite(*details[i].logprob)) : json(nullptr));
    json top = json::object();
    if (known) {
      for (const token_logprob& each : details[i].alternatives)
        top[token_text(tokens, each.token)] = finite(each.logprob);
      top[text] = finite(*details[i].logprob);
    }
    made["top_logprobs"].push_back(std::move(top));
  }
  return dump(made);
}

class completion_format final : public answer_format {
 public:
  completion_format(std::shared_ptr<const prompting> prompts, const answer_order& order,
                    std::vector<std::string> echoed)
      : prompts_(std::move(prompts)),
        n_(static_cast<std::size_t>(order.n)),
        echoed_(std::move(echoed)),
        has_logprobs_(order.sampling.logprobs.has_value()),
        usage_null_(order.include_usage ? R"(,"usage":null})" : "}"),
        offsets_(order.prompts.size() * n_) {
    head_ = fmt::format(R"({{"id":"cmpl-{}","object":"text_completion","created":{},"model":)", random_hex(24),
                        std::time(nullptr));
    append_quoted(head_, order.model);
    head_ += R"(,"choices":[)";
    for (std::size_t i = 0; i < offsets_.size(); ++i)
      if (!echoed_.empty()) offsets_[i] = characters_of(echoed_[i / n_]);
  }

  void begin(std::string& to, std::size_t index) override {
    if (!echoed_.empty() && !echoed_[index / n_].empty()) frame(to, index, echoed_[index / n_], "null", "null");
  }
  void part(std::string& to, std::size_t index, const answer_part& part) override {
    const std::string logprobs =
        has_logprobs_ ? logprobs_json(prompts_->tokens(), part.tokens, part.details, offsets_[index]) : "null";
    frame(to, index, part.text, logprobs, part.end ? json_text(part.end->finish) : "null");
  }
  void usage(std::string& to, const answer_usage& usage) override {
    to += "data: " + head_ + R"(],"usage":)" + usage_json(usage) + "}\n\n";
  }
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    std::string text = head_;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const answer_choice& each = choices[i];
      const std::string logprobs =
          has_logprobs_ ? logprobs_json(prompts_->tokens(), each.tokens, each.details, offsets_[i]) : "null";
      if (i > 0) text += ',';
      choice(text, i, echoed_.empty() ? each.text : echoed_[i / n_] + each.text, logprobs, json_text(each.finish));
    }
    return text + R"(],"usage":)" + usage_json(usage) + "}";
  }

 private:
  static void choice(std::string& to, std::size_t index, std::string_view text, std::string_view logprobs,
                     std::string_view finish) {
    fmt::format_to(std::back_inserter(to), R"({{"index":{},"text":)", index);
    append_quoted(to, text);
    fmt::format_to(std::back_inserter(to), R"(,"logprobs":{},"finish_reason":{}}})", logprobs, finish);
  }
  void frame(std::string& to, std::size_t index, std::string_view text, std::string_view logprobs,
             std::string_view finish) const {
    to += "data: ";
    to += head_;
    choice(to, index, text, logprobs, finish);
    to += ']';
    to += usage_null_;
    to += "\n\n";
  }

  std::shared_ptr<const prompting> prompts_;
  std::size_t n_;
  std::vector<std::string> echoed_;  ///< a text for each prompt; empty: no echo
  bool has_logprobs_;
  std::string usage_null_;
  std::vector<std::int64_t> offsets_;
  std::string head_;
};

std::vector<std::string> echoed_texts(const prompting& prompts, const answer_order& order) {
  std::vector<std::string> texts;
  for (const prompt_input& each : order.prompts)
    texts.push_back(each.text ? *each.text : prompts.tokens().decode(each.tokens, false));
  return texts;
}

}  // namespace

void serve_completion(const std::shared_ptr<api_context>& context, const http_request& request,
                      const std::string& owner, const std::shared_ptr<http_exchange>& exchange) {
  const json body = parse_body(request.body);
  const api_fields from(body);
  answer_order order = read_order(from, *context, owner);
  order.prompts = read_prompts(from, "prompt");
  order.sampling.max_tokens = from.integer("max_tokens", 1, INT32_MAX).value_or(16);
  order.sampling.logprobs = from.small("logprobs", 0, 100);
  const bool echo = from.boolean("echo").value_or(false);
  if (echo && order.sampling.logprobs)
    refuse_field("echo", "echo with logprobs is not served here: ask for one of them", "unsupported_value");
  auto echoed = echo ? echoed_texts(*context->parts.prompts, order) : std::vector<std::string>();
  auto format = std::make_unique<completion_format>(context->parts.prompts, order, std::move(echoed));
  start_answer(context, std::move(order), std::move(format), exchange);
}

}  // namespace troupe
