#include "model/engine/generate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/engine/sampling/answer_form.hpp"
#include "model/engine/sampling/sampling_history.hpp"
#include "model/engine/sampling/stop_matcher.hpp"
#include "model/engine/text/model_text.hpp"

namespace troupe {
namespace {

void check_prompt(const single_sequence& sequence, std::span<const token_id> prompt) {
  if (prompt.empty()) refuse("the prompt is empty: give at least one token");
  const auto length = static_cast<std::int64_t>(prompt.size());
  if (length >= sequence.room())
    refuse("the prompt has {} tokens, the context {}: shorten the prompt", length, sequence.room());
  check_prompt_tokens(prompt, sequence.vocab_size());
}

/// The form that the answer must keep to; nothing if everything is allowed.
std::optional<answer_form> form_of(const sampling_params& params, std::shared_ptr<const tokenizer> tokens,
                                   const std::vector<token_id>& ends, std::int64_t vocab_size) {
  if (!params.constraint) return std::nullopt;
  auto tree = std::make_shared<const token_tree>(std::move(tokens), vocab_size);
  return answer_form(std::make_shared<token_constraint>(params.constraint, std::move(tree)), params, ends, {});
}

/// Text as it becomes certain: whole characters, and nothing that may yet be a stop string.
class text_stream {
 public:
  text_stream(const tokenizer& tokens, std::span<const token_id> prompt, const sampling_params& params,
              const std::function<void(std::string_view)>& sink, bool skip_special)
      : decoder_(tokens, skip_special, begins_text(tokens, prompt) && !params.constraint),
        stops_(params.stop),
        sink_(sink) {}

  /// True when a stop string was met that counts.
  bool push(token_id token, bool stops_count) {
    stops_count_ = stops_count;
    emit(stops_.push(decoder_.push(token), stops_count));
    return stops_.stopped();
  }
  /// All of the text.
  std::string finish() {
    if (!stops_.stopped()) {
      emit(stops_.push(decoder_.finish(), stops_count_));
      emit(stops_.finish());
    }
    return std::move(text_);
  }

 private:
  static bool begins_text(const tokenizer& tokens, std::span<const token_id> prompt) {
    return std::all_of(prompt.begin(), prompt.end(), [&](token_id t) { return tokens.is_special(t); });
  }
  void emit(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (sink_) sink_(piece);
  }

  stream_decoder decoder_;
  stop_matcher stops_;
  bool stops_count_ = false;
  const std::function<void(std::string_view)>& sink_;
  std::string text_;
};

/// An answer to which tokens are added until it ends.
class growing_answer {
 public:
  growing_answer(const kernel_table& kernels, const sampling_params& params, std::span<const token_id> prompt,
                 std::vector<token_id> ends, text_stream text, std::optional<answer_form> form)
      : params_(params),
        ends_(std::move(ends)),
        sampler_(kernels),
        history_(params, prompt),
        text_(std::move(text)),
        form_(std::move(form)) {}

  /// Draws a token for a position. False where the answer ends, with this token or without it.
  bool grow(std::span<const float> logits, std::int64_t position) {
    const auto allowed = form_ ? form_->allowed(answer_.tokens) : std::span<const std::uint64_t>();
    if (form_ && allowed.empty()) return end_of_form();
    const auto barred = barred_ends(ends_, params_, answer_.tokens.size());
    sampled_token chosen =
        sampler_.sample(logits, params_, history_, static_cast<std::uint64_t>(position), allowed, barred);
    if (std::find(ends_.begin(), ends_.end(), chosen.token) != ends_.end()) return stop();
    return add(std::move(chosen));
  }

  std::int64_t length() const { return static_cast<std::int64_t>(answer_.tokens.size()); }
  std::span<const token_id> last_token() const { return std::span(answer_.tokens).last(1); }
  generation take() {
    answer_.text = text_.finish();
    return std::move(answer_);
  }

 private:
  bool stop() {
    answer_.reason = finish::stop;
    return false;
  }
  /// Nothing can follow: the form is complete, or a limit cuts it short.
  bool end_of_form() { return form_->is_complete() && stop(); }
  bool add(sampled_token chosen) {
    const token_id token = chosen.token;
    answer_.tokens.push_back(token);
    history_.add(token);
    if (params_.logprobs) answer_.details.push_back(std::move(chosen));
    if (text_.push(token, length() > params_.min_tokens)) return stop();
    return !form_ || !form_->add(answer_.tokens) || end_of_form();
  }

  const sampling_params& params_;
  std::vector<token_id> ends_;
  sampler sampler_;
  sampling_history history_;
  text_stream text_;
  std::optional<answer_form> form_;
  generation answer_;
};

}  // namespace

std::string_view name_of(finish reason) {
  return reason == finish::stop ? "stop" : "length";
}

generation generate(single_sequence& sequence, const kernel_table& kernels,
                    const std::shared_ptr<const tokenizer>& tokens, std::span<const token_id> end_tokens,
                    std::span<const token_id> prompt, const sampling_params& params,
                    const std::function<void(std::string_view)>& on_text, bool skip_special) {
  check_prompt(sequence, prompt);
  check(params, sequence.vocab_size());
  const std::int64_t most = std::min(params.max_tokens, sequence.room() - static_cast<std::int64_t>(prompt.size()));
  const std::vector<token_id> ends = ends_of(params, end_tokens);
  growing_answer answer(kernels, params, prompt, ends, text_stream(*tokens, prompt, params, on_text, skip_special),
                        form_of(params, tokens, ends, sequence.vocab_size()));
  for (std::span<const token_id> next = prompt; answer.length() < most; next = answer.last_token()) {
    const std::span<const float> logits = sequence.feed(next);
    if (!answer.grow(logits, sequence.position())) break;
  }
  return answer.take();
}

}  // namespace troupe
