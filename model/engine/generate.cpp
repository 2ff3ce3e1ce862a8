#include "model/engine/generate.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/engine/answer_form.hpp"
#include "model/engine/sampling_history.hpp"
#include "model/engine/stop_matcher.hpp"

namespace troupe {
namespace {

bool contains(std::span<const token_id> tokens, token_id token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

void check_prompt(const single_sequence& sequence, std::span<const token_id> prompt, std::int64_t vocab) {
  if (prompt.empty()) refuse("the prompt is empty: give at least one token");
  const auto length = static_cast<std::int64_t>(prompt.size());
  if (length >= sequence.room())
    refuse("the prompt has {} tokens, the context {}: shorten the prompt", length, sequence.room());
  for (const token_id token : prompt)
    if (token < 0 || token >= vocab)
      refuse("the prompt names token {}: the model has tokens 0 to {}", token, vocab - 1);
}

/// What the answer may go on with; none where all is allowed.
std::optional<answer_form> form_of(const sampling_params& params, std::shared_ptr<const tokenizer> tokens,
                                   std::span<const token_id> end_tokens, std::int64_t vocab_size) {
  if (!params.constraint) return std::nullopt;
  auto tree = std::make_shared<const token_tree>(std::move(tokens), vocab_size);
  return answer_form(std::make_shared<token_constraint>(params.constraint, std::move(tree)), params, end_tokens, {});
}

/// Text as it becomes certain: whole characters, and nothing that may yet be a stop string.
class text_stream {
 public:
  text_stream(const tokenizer& tokens, std::span<const token_id> prompt, const sampling_params& params,
              const std::function<void(std::string_view)>& sink, std::string& text)
      : decoder_(tokens, true,
                 std::all_of(prompt.begin(), prompt.end(), [&](token_id t) { return tokens.is_special(t); })),
        stops_(params.stop),
        sink_(sink),
        text_(text) {}

  /// True when a stop string was met.
  bool push(token_id token) {
    emit(stops_.push(decoder_.push(token)));
    return stops_.stopped();
  }
  void finish() {
    if (stops_.stopped()) return;
    emit(stops_.push(decoder_.finish()));
    emit(stops_.finish());
  }

 private:
  void emit(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    if (sink_) sink_(piece);
  }

  stream_decoder decoder_;
  stop_matcher stops_;
  const std::function<void(std::string_view)>& sink_;
  std::string& text_;
};

}  // namespace

std::string_view name_of(finish reason) {
  return reason == finish::stop ? "stop" : "length";
}

std::vector<token_id> end_tokens_of(const model_config& config, const tokenizer& tokens) {
  std::vector<token_id> ends(config.eos_tokens.begin(), config.eos_tokens.end());
  if (ends.empty() && tokens.eos()) ends.push_back(*tokens.eos());
  return ends;
}

generation generate(single_sequence& sequence, const kernel_table& kernels,
                    const std::shared_ptr<const tokenizer>& tokens, std::span<const token_id> end_tokens,
                    std::span<const token_id> prompt, const sampling_params& params,
                    const std::function<void(std::string_view)>& on_text) {
  check_prompt(sequence, prompt, sequence.vocab_size());
  check(params, sequence.vocab_size());
  generation answer;
  sampler choose(kernels);
  sampling_history history(params, prompt);
  auto form = form_of(params, tokens, end_tokens, sequence.vocab_size());
  text_stream text(*tokens, prompt, params, on_text, answer.text);
  const std::int64_t most = std::min(params.max_tokens, sequence.room() - static_cast<std::int64_t>(prompt.size()));
  std::span<const token_id> next = prompt;
  token_id last = 0;
  while (static_cast<std::int64_t>(answer.tokens.size()) < most) {
    const std::span<const float> logits = sequence.feed(next);
    const auto allowed = form ? form->allowed(answer.tokens) : std::span<const std::uint64_t>();
    if (form && allowed.empty()) {
      answer.reason = finish::stop;
      break;
    }
    sampled_token chosen =
        choose.sample(logits, params, history, static_cast<std::uint64_t>(sequence.position()), allowed);
    last = chosen.token;
    next = std::span(&last, 1);
    if ((!params.ignore_eos && contains(end_tokens, last)) || contains(params.stop_tokens, last)) {
      answer.reason = finish::stop;
      break;
    }
    answer.tokens.push_back(last);
    history.add(last);
    if (params.logprobs) answer.details.push_back(std::move(chosen));
    const bool has_stop = text.push(last), has_form = form && form->add(answer.tokens);
    if (has_stop || has_form) {
      answer.reason = finish::stop;
      break;
    }
  }
  text.finish();
  return answer;
}

}  // namespace troupe
