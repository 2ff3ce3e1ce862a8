#include <algorithm>
#include <ctime>
#include <span>
#include <utility>

#include "actors/http/answers/answer_text.hpp"
#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/answers/order_fields.hpp"
#include "actors/http/json_text.hpp"
#include "actors/requests/request_fields_impl.hpp"
#include "base/entropy.hpp"
#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "model/text/model_text.hpp"

namespace troupe {
namespace {

/// How far an answer's text has come.
struct answer_place {
  stream_decoder decoder;
  std::size_t offset = 0;        ///< of its next token, in characters of prompt and answer
  bool has_told_prompt = false;  ///< the prompt's tokens
};

struct echoed_prompt {
  std::string text;
  bool is_sent = false;  ///< with its log-probabilities
};

/// The lists in completions: {"tokens","token_logprobs","top_logprobs","text_offset"}
class logprob_lists {
 public:
  /// `most`: how many of the likeliest tokens each place has.
  logprob_lists(const tokenizer& tokens, std::int32_t most) : tokens_(tokens), most_(to_size(most)) {}

  void add(token_id token, const sampled_token* details, std::size_t offset) {
    const std::string name = completion_token(token_text(tokens_, token));
    const bool known = details && details->logprob;
    lists_["tokens"].push_back(name);
    lists_["text_offset"].push_back(offset);
    lists_["token_logprobs"].push_back(known ? json(finite_logprob(*details->logprob)) : json(nullptr));
    lists_["top_logprobs"].push_back(known ? most_likely(*details, name) : json(nullptr));
  }
  /// Includes the token that ended the answer, although it is not in the text: evaluations expect an entry for each
  /// chosen token.
  void add_answer(const std::vector<token_id>& ids, const std::vector<sampled_token>& details,
                  const std::optional<sampled_token>& ending, answer_place& at) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      add(ids[i], i < details.size() ? &details[i] : nullptr, at.offset);
      at.offset += characters_in(at.decoder.push(ids[i]));
    }
    if (ending) add(ending->token, &*ending, at.offset);
  }
  /// `text`: as it is echoed, the client's own. Its tokens may say more, as a BOS that the tokenizer put before it, or
  /// say it otherwise, as normalized characters, but they end where it ends: so places are counted from there.
  void add_prompt(const std::vector<sampled_token>& scored, std::string_view text) {
    stream_decoder decoder(tokens_, false);
    std::vector<std::size_t> before;
    std::size_t said = 0;
    for (const sampled_token& each : scored) {
      before.push_back(said);
      said += characters_in(decoder.push(each.token));
    }
    said += characters_in(decoder.finish());
    const std::size_t length = characters_in(text);
    const auto offset = [&](std::size_t at) { return at == 0 ? 0 : at + length - std::min(at + length, said); };
    for (std::size_t i = 0; i < scored.size(); ++i) add(scored[i].token, &scored[i], offset(before[i]));
  }
  std::string text() const { return dump(lists_); }

 private:
  /// If several tokens have the same text, only one can be shown: the one at this place, or else the likeliest.
  json most_likely(const sampled_token& details, const std::string& name) const {
    json top = json::object();
    for (const token_logprob& each :
         std::span(details.alternatives).first(std::min(most_, details.alternatives.size())))
      top.emplace(completion_token(token_text(tokens_, each.token)), finite_logprob(each.logprob));
    top[name] = finite_logprob(*details.logprob);
    return top;
  }

  const tokenizer& tokens_;
  std::size_t most_;
  json lists_{{"tokens", json::array()},
              {"token_logprobs", json::array()},
              {"top_logprobs", json::array()},
              {"text_offset", json::array()}};
};

class completion_format final : public answer_format {
 public:
  completion_format(std::shared_ptr<const prompting> prompts, const answer_order& order,
                    std::vector<echoed_prompt> echoed)
      : prompts_(std::move(prompts)),
        model_(order.model),
        n_(to_size(order.n)),
        echoed_(std::move(echoed)),
        logprobs_(order.sampling.logprobs),
        prompt_logprobs_(order.prompt_logprobs),
        tells_tokens_(order.token_ids),
        skips_special_(order.skip_special),
        has_form_(order.sampling.constraint),
        frame_end_(frame_end(order)) {
    head_ = fmt::format(R"({{"id":"cmpl-{}","object":"text_completion","created":{},"model":{})", random_hex(24),
                        std::time(nullptr), json_text(model_));
  }

  void know_prompt(std::span<const token_id> prompt) override {
    const tokenizer& tokens = prompts_->tokens();
    const stream_decoder decoder(tokens, skips_special_, begins_text(tokens, prompt, has_form_));
    const std::size_t offset = characters_in(echo_of(places_.size()));
    for (std::size_t i = 0; i < n_; ++i) places_.push_back({decoder, offset});
    if (tells_tokens_) prompts_told_.push_back(token_ids_json(prompt));
  }
  void begin(std::string& to, std::size_t index, const std::string& adapter) override {
    if (index == 0) head_ += before_choices(model_, adapter);
    const bool comes_later = logprobs_.has_value();  // with the prompt's log-probabilities
    if (!echo_of(index).empty() && !comes_later) frame(to, index, echo_of(index), token_fields(index, {}));
  }
  void part(std::string& to, std::size_t index, const answer_part& part) override {
    if (!part.scored.empty() && logprobs_) echo(to, index / n_, part.scored);
    std::string logprobs = "null";
    const auto ending = part.end ? part.end->token : std::nullopt;
    if (logprobs_) {
      logprob_lists lists(prompts_->tokens(), *logprobs_);
      lists.add_answer(part.tokens, part.details, ending, places_[index]);
      logprobs = lists.text();
    }
    frame(to, index, part.text, token_fields(index, part.tokens, ending), logprobs,
          part.end ? finish_json(part.end->finish, part.end->stopped_by) : "null");
  }
  void usage(std::string& to, const answer_usage& usage) override { to += usage_frame(head_, usage); }
  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    std::string text = head_ + before_choices(model_, choices.front().end.adapter);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const answer_choice& each = choices[i];
      const auto& scored = choices[i / n_ * n_].scored;
      if (i > 0) text += ',';
      std::string more = token_fields(i, each.tokens, each.end.token);
      if (prompt_logprobs_)
        more += R"(,"prompt_logprobs":)" + prompt_logprobs_json(prompts_->tokens(), scored, *prompt_logprobs_);
      choice(text, i, std::string(echo_of(i)) + each.text, more, logprobs_ ? logprobs_of(i, each, scored) : "null",
             finish_json(each.end.finish, each.end.stopped_by));
    }
    return text + R"(],"usage":)" + usage_json(usage) + "}";
  }

 private:
  /// What comes before an answer's text.
  std::string_view echo_of(std::size_t index) const {
    return echoed_.empty() ? std::string_view() : echoed_[index / n_].text;
  }
  std::string logprobs_of(std::size_t index, const answer_choice& choice, const std::vector<sampled_token>& scored) {
    logprob_lists lists(prompts_->tokens(), *logprobs_);
    if (!echoed_.empty()) lists.add_prompt(scored, echo_of(index));
    lists.add_answer(choice.tokens, choice.details, choice.end.token, places_[index]);
    return lists.text();
  }
  /// The prompt's scores come before its first answer, and may come again if the prompt is computed anew: only the
  /// first ones are sent.
  void echo(std::string& to, std::size_t prompt, const std::vector<sampled_token>& scored) {
    echoed_prompt& echoed = echoed_[prompt];
    if (std::exchange(echoed.is_sent, true)) return;
    logprob_lists lists(prompts_->tokens(), *logprobs_);
    lists.add_prompt(scored, echoed.text);
    for (std::size_t i = prompt * n_; i < (prompt + 1) * n_; ++i)
      frame(to, i, echoed.text, token_fields(i, {}), lists.text());
  }
  /// The fields of vLLM's return_token_ids; the prompt's tokens only with what comes first of a choice.
  std::string token_fields(std::size_t index, std::span<const token_id> tokens,
                           const std::optional<sampled_token>& ending = {}) {
    if (!tells_tokens_) return {};
    std::string fields = R"(,"token_ids":)" + token_ids_json(tokens, ending);
    if (!std::exchange(places_[index].has_told_prompt, true))
      fields += R"(,"prompt_token_ids":)" + prompts_told_[index / n_];
    return fields;
  }
  /// `more`: further fields.
  static void choice(std::string& to, std::size_t index, std::string_view text, std::string_view more,
                     std::string_view logprobs, std::string_view finish) {
    fmt::format_to(std::back_inserter(to), R"({{"index":{},"text":{},"logprobs":{},"finish_reason":{}{}}})", index,
                   json_text(text), logprobs, finish, more);
  }
  void frame(std::string& to, std::size_t index, std::string_view text, std::string_view more,
             std::string_view logprobs = "null", std::string_view finish = "null") const {
    to += "data: ";
    to += head_;
    choice(to, index, text, more, logprobs, finish);
    to += frame_end_;
  }

  std::shared_ptr<const prompting> prompts_;
  std::string model_;
  std::size_t n_;
  std::vector<echoed_prompt> echoed_;                       ///< one for each prompt; empty: no echo
  std::optional<std::int32_t> logprobs_, prompt_logprobs_;  ///< how many the response has
  bool tells_tokens_, skips_special_, has_form_;
  std::string_view frame_end_;
  std::vector<answer_place> places_;       ///< of each answer
  std::vector<std::string> prompts_told_;  ///< the tokens of each prompt, if they are to be told
  std::string head_;
};

constexpr std::size_t most_echoed = 64 << 20;

/// Bytes of no character are replaced as in answers, so that characters of both are counted alike.
std::string told_text(const tokenizer& tokens, std::span<const token_id> prompt) {
  stream_decoder decoder(tokens, false);
  std::string text;
  for (const token_id token : prompt) text += decoder.push(token);
  return text + decoder.finish();
}

std::vector<echoed_prompt> echoed_prompts(const prompting& prompts, const answer_order& order) {
  if (!prompts.has_tokenizer())
    refuse_field("echo", "echo is not served: the model has no tokenizer", "unsupported_value");
  std::vector<echoed_prompt> echoed;
  std::size_t bytes = 0;
  for (const prompt_input& each : order.prompts) {
    if (each.most_tokens != 0)
      refuse_field("echo", "echo does not go with truncate_prompt_tokens: leave one out", "unsupported_value");
    echoed.push_back({each.text ? *each.text : told_text(prompts.tokens(), each.tokens)});
    bytes += echoed.back().text.size() * to_size(order.n);
  }
  if (bytes > most_echoed)
    refuse_field("echo", fmt::format("echo would put {} bytes before the answers: use at most {}, or a smaller n",
                                     bytes, most_echoed));
  return echoed;
}

}  // namespace

asked_answer read_completion(const request_fields& from, const served_model& served) {
  answer_order order = read_order(from, served);
  read_prompts(from, "prompt", order);
  const bool echo = from.boolean("echo").value_or(false);
  order.sampling.max_tokens = most_tokens_of(from, "max_tokens", echo ? 0 : 1).value_or(16);
  order.sampling.logprobs = from.small("logprobs", 0, 100);
  if (echo && (order.sampling.logprobs || order.sampling.max_tokens == 0))
    order.sampling.prompt_logprobs = std::max(order.sampling.logprobs.value_or(0), order.prompt_logprobs.value_or(0));
  auto echoed = echo ? echoed_prompts(*served.prompts, order) : std::vector<echoed_prompt>();
  auto format = std::make_unique<completion_format>(served.prompts, order, std::move(echoed));
  return {std::move(order), std::move(format)};
}

}  // namespace troupe
