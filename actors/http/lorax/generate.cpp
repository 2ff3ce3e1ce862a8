#include "actors/http/lorax/generate.hpp"

#include "actors/http/answers/answer_text.hpp"
#include "actors/http/answers/order_fields.hpp"
#include "actors/http/json_text.hpp"
#include "actors/http/lorax/generate_errors.hpp"
#include "actors/http/lorax/generate_input_impl.hpp"
#include "actors/http/own_fields.hpp"
#include "model/text/model_text.hpp"

namespace troupe {
namespace {

std::string finish_reason(const answer_end& end) {
  if (end.finish == "length") return R"("length")";
  return end.stopped_by.text ? R"("stop_sequence")" : R"("eos_token")";
}

std::string logprob_json(const std::optional<float>& logprob) {
  return logprob ? fmt::format("{}", finite_logprob(*logprob)) : "null";
}

class generation_format final : public answer_format {
 public:
  generation_format(std::shared_ptr<const prompting> prompts, const answer_order& order,
                    const generation_wishes& wishes, generated_shape shape)
      : prompts_(std::move(prompts)),
        wishes_(wishes),
        shape_(shape),
        text_(wishes.full_text ? order.prompts.front().text.value_or("") : ""),
        skips_special_(order.skip_special),
        has_form_(order.sampling.constraint) {
    if (order.sampling.temperature > 0) seed_ = fmt::format("{}", order.sampling.seed);
  }

  void know_prompt(std::span<const token_id> prompt) override {
    const tokenizer& tokens = prompts_->tokens();
    prompt_tokens_ = prompt.size();
    decoder_.emplace(tokens, skips_special_, begins_text(tokens, prompt, has_form_));
  }
  void part(std::string& to, std::size_t /*index*/, const answer_part& part) override {
    text_ += part.text;
    for (std::size_t i = 0; i < part.tokens.size(); ++i) add_token(to, part.tokens[i], detail_of(part.details, i));
    if (!part.end) return;
    if (const auto& ending = part.end->token) add_token(to, ending->token, &*ending);
    send_last(to, json_text(text_), details_json(*part.end, "", ""));
  }
  std::string_view last_frame() const override { return ""; }
  void error(std::string& to, std::string_view error, std::string_view /*fields*/) override {
    to.append("data:").append(generation_error(error)).append("\n\n");
  }
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& /*usage*/) override {
    const answer_choice& answer = choices.front();
    std::string tokens;
    const auto add = [&](token_id token, const sampled_token* details) {
      tokens += (tokens.empty() ? "" : ",") + token_json(token, details);
      ++generated_tokens_;
    };
    for (std::size_t i = 0; i < answer.tokens.size(); ++i) add(answer.tokens[i], detail_of(answer.details, i));
    if (const auto& ending = answer.end.token) add(ending->token, &*ending);
    std::string text = R"({"generated_text":)" + json_text(text_ + answer.text);
    if (wishes_.details) text += R"(,"details":)" + details_json(answer.end, prefill_json(answer.scored), tokens);
    text += '}';
    return shape_ == generated_shape::list ? "[" + text + "]" : text;
  }

 private:
  static const sampled_token* detail_of(const std::vector<sampled_token>& details, std::size_t i) {
    return i < details.size() ? &details[i] : nullptr;
  }
  /// The last token's frame also has the whole text, so each waits until it is known that another follows.
  void add_token(std::string& to, token_id token, const sampled_token* details) {
    send_last(to, "null", "null");
    last_ = token_json(token, details);
    ++generated_tokens_;
  }
  void send_last(std::string& to, std::string_view text, std::string_view details) {
    if (last_.empty()) return;
    fmt::format_to(std::back_inserter(to), "data:{{\"token\":{},\"generated_text\":{},\"details\":{}}}\n\n", last_,
                   text, details);
    last_.clear();
  }
  /// A token's text is what it adds, which is nothing while a character is not whole. None is skipped, whatever was
  /// guessed, but LoRAX's client wants to be told so.
  std::string token_json(token_id token, const sampled_token* details) {
    const bool is_special = prompts_->tokens().is_special(token);
    const std::string text = is_special ? token_text(prompts_->tokens(), token) : decoder_->push(token);
    std::string more;
    if (details && wishes_.alternatives > 0) {
      for (const token_logprob& each : details->alternatives)
        more += (more.empty() ? "" : ",") + scored_json(each.token, each.logprob);
      more = R"(,"alternative_tokens":[)" + more + "]";
    }
    return fmt::format(R"({{"id":{},"text":{},"logprob":{},"special":{},"skipped":false{}}})", token, json_text(text),
                       logprob_json(details ? details->logprob : std::nullopt), is_special, more);
  }
  std::string prefill_json(const std::vector<sampled_token>& scored) const {
    std::string list;
    for (const sampled_token& each : scored) list += (list.empty() ? "" : ",") + scored_json(each.token, each.logprob);
    return list;
  }
  std::string scored_json(token_id token, const std::optional<float>& logprob) const {
    return fmt::format(R"({{"id":{},"text":{},"logprob":{}}})", token, json_text(token_text(prompts_->tokens(), token)),
                       logprob_json(logprob));
  }
  /// Of a stream, whose tokens were told one by one, without lists.
  std::string details_json(const answer_end& end, std::string_view prefill, std::string_view tokens) const {
    return fmt::format(
        R"({{"finish_reason":{},"prompt_tokens":{},"generated_tokens":{},"skipped_tokens":0,"seed":{},"prefill":[{}],"tokens":[{}]}})",
        finish_reason(end), prompt_tokens_, generated_tokens_, seed_, prefill, tokens);
  }

  std::shared_ptr<const prompting> prompts_;
  generation_wishes wishes_;
  generated_shape shape_;
  std::string text_;  ///< so far
  bool skips_special_, has_form_;
  std::optional<stream_decoder> decoder_;
  std::string seed_ = "null";
  std::size_t prompt_tokens_ = 0, generated_tokens_ = 0;
  std::string last_;  ///< the token that was not sent yet
};

constexpr own_field fields_of_generation[] = {{"prompt", "inputs"},
                                              {"max_tokens", "max_new_tokens"},
                                              {"truncate_prompt_tokens", "truncate"},
                                              {"guided_json", "grammar"},
                                              {"guided_regex", "grammar"}};

answer_order read_as_completion(const json& completion, const served_model& served) {
  const request_fields from(completion);
  try {
    answer_order order = read_order(from, served);
    read_prompts(from, "prompt", order);
    order.sampling.max_tokens = most_tokens_of(from, "max_tokens", 1).value_or(INT32_MAX);
    name_own_fields(order, fields_of_generation);
    return order;
  } catch (const field_error& error) {
    throw in_own_words(error, fields_of_generation);
  }
}

}  // namespace

asked_answer read_generation(const request_fields& from, const served_model& served, bool stream,
                             generated_shape shape) {
  const generation_wishes wishes = read_wishes(from);
  answer_order order = read_as_completion(completion_of_generation(from, stream), served);
  if (wishes.details || stream) order.sampling.logprobs = wishes.alternatives;
  if (wishes.prompt_details && !stream) order.sampling.prompt_logprobs = 0;
  auto format = std::make_unique<generation_format>(served.prompts, order, wishes, shape);
  return {std::move(order), std::move(format)};
}

}  // namespace troupe
