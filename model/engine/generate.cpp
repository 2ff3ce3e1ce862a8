#include "model/engine/generate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/engine/sampling/certain_text.hpp"
#include "model/engine/sampling/grown_answer.hpp"
#include "model/text/model_text.hpp"

namespace troupe {
namespace {

void check_prompt(const single_sequence& sequence, std::span<const token_id> prompt) {
  if (prompt.empty()) refuse("the prompt is empty: give at least one token");
  check_length(prompt.size(), sequence.room());
  check_prompt_tokens(prompt, sequence.vocab_size());
}

grown_answer answer_to(const prompt_to_answer& asked, std::int64_t vocab_size) {
  const sampling_params& params = asked.params;
  grown_answer answer(params, ends_of(params, asked.end_tokens), asked.prompt, asked.prompt.size());
  if (!params.constraint) return answer;
  auto tree = std::make_shared<const token_tree>(asked.tokens, vocab_size);
  answer.keep_to(std::make_shared<token_constraint>(params.constraint, std::move(tree)));
  return answer;
}

certain_text no_text_yet(const prompt_to_answer& asked) {
  const bool begins = begins_text(*asked.tokens, asked.prompt, bool(asked.params.constraint));
  return {stream_decoder(*asked.tokens, asked.skip_special, begins), stop_matcher(asked.params.stop)};
}

/// An answer to which tokens are added until it ends, and its text.
class told_answer {
 public:
  told_answer(const kernel_table& kernels, grown_answer answer, const prompt_to_answer& asked)
      : sampler_(kernels), answer_(std::move(answer)), text_(no_text_yet(asked)), sink_(asked.on_text) {}

  /// Draws a token. False where the answer ends, with this token or without it.
  bool grow(std::span<const float> logits) {
    std::optional<sampled_token> chosen = answer_.choose(sampler_, logits);
    if (!chosen) return end_of_form();
    return answer_.is_end(chosen->token) ? stop() : add(std::move(*chosen));
  }

  std::int64_t length() const { return static_cast<std::int64_t>(answer_.written().size()); }
  std::span<const token_id> last_token() const { return answer_.text().last(1); }
  generation take() {
    made_.tokens.assign(answer_.written().begin(), answer_.written().end());
    tell(text_.finish());
    return std::move(made_);
  }

 private:
  bool stop() {
    made_.reason = end_reason::stop;
    return false;
  }
  /// Nothing can follow: the form is complete, or a limit cuts it short.
  bool end_of_form() { return answer_.is_complete() && stop(); }
  bool add(sampled_token chosen) {
    const token_id token = chosen.token;
    const bool goes_on = answer_.add(token);
    if (answer_.params().logprobs) made_.details.push_back(std::move(chosen));
    tell(text_.push(token, length() > answer_.params().min_tokens));
    if (text_.stopped()) return stop();
    return goes_on || end_of_form();
  }
  void tell(const std::string& text) {
    if (text.empty()) return;
    made_.text += text;
    if (sink_) sink_(text);
  }

  sampler sampler_;
  grown_answer answer_;
  certain_text text_;
  const std::function<void(std::string_view)>& sink_;
  generation made_;
};

}  // namespace

void check_length(std::size_t prompt, std::int64_t context) {
  const auto length = static_cast<std::int64_t>(prompt);
  if (length >= context) refuse("the prompt has {} tokens, the context {}: shorten the prompt", length, context);
}

generation generate(single_sequence& sequence, const kernel_table& kernels, const prompt_to_answer& asked) {
  check_prompt(sequence, asked.prompt);
  check(asked.params, sequence.vocab_size());
  const auto length = static_cast<std::int64_t>(asked.prompt.size());
  const std::int64_t most = std::min(asked.params.max_tokens, sequence.room() - length);
  told_answer answer(kernels, answer_to(asked, sequence.vocab_size()), asked);
  for (std::span<const token_id> next = asked.prompt; answer.length() < most; next = answer.last_token()) {
    if (!answer.grow(sequence.feed(next))) break;
  }
  return answer.take();
}

}  // namespace troupe
