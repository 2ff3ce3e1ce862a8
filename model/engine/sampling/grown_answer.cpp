#include "model/engine/sampling/grown_answer.hpp"

#include <algorithm>
#include <utility>

namespace troupe {

grown_answer::grown_answer(const sampling_params& params, std::vector<token_id> ends, std::span<const token_id> text,
                           std::size_t prompt_tokens)
    : params_(params),
      ends_(std::move(ends)),
      text_(text.begin(), text.end()),
      prompt_tokens_(prompt_tokens),
      history_(params, text.first(prompt_tokens), text.subspan(prompt_tokens)) {}

void grown_answer::keep_to(std::shared_ptr<token_constraint> constraint) {
  form_.emplace(std::move(constraint), params_, ends_, written());
}

bool grown_answer::is_end(token_id token) const {
  return std::find(ends_.begin(), ends_.end(), token) != ends_.end();
}

std::optional<sampled_token> grown_answer::choose(sampler& by, std::span<const float> logits) {
  const auto allowed = form_ ? form_->allowed(written()) : std::span<const std::uint64_t>();
  if (params_.constraint && allowed.empty()) return std::nullopt;
  return by.sample(logits, params_, history_, text_.size(), allowed, barred());
}

bool grown_answer::add(token_id token) {
  text_.push_back(token);
  history_.add(token);
  return !form_ || form_->add(written());
}

}  // namespace troupe
