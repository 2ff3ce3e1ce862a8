#include "model/engine/sampling/answer_form.hpp"

#include <algorithm>

#include "base/to_size.hpp"

namespace troupe {

token_tree_source token_tree_from(std::function<std::shared_ptr<const tokenizer>()> open, std::int64_t vocab_size) {
  return [open = std::move(open), vocab_size, tree = std::shared_ptr<const token_tree>()]() mutable {
    if (!tree) tree = std::make_shared<token_tree>(open(), vocab_size);
    return tree;
  };
}

answer_form::answer_form(std::shared_ptr<token_constraint> constraint, const sampling_params& params,
                         std::vector<token_id> ends, std::span<const token_id> written)
    : constraint_(std::move(constraint)), ends_(std::move(ends)), stops_(params.stop_tokens) {
  find_state(written);
}

void answer_form::find_state(std::span<const token_id> written) {
  state_ = constraint_->start();
  for (const token_id token : written) state_ = constraint_->after(state_, token);
  generation_ = constraint_->generation();
}

std::span<const std::uint64_t> answer_form::allowed(std::span<const token_id> written) {
  if (generation_ != constraint_->generation()) find_state(written);
  mask_ = constraint_->allowed(state_);
  generation_ = constraint_->generation();
  const bool complete = is_complete();
  for (const token_id token : ends_) {
    const auto word = to_size(token) / 64;
    if (word >= mask_.size()) continue;
    const std::uint64_t bit = std::uint64_t{1} << (token % 64);
    if (complete)
      mask_[word] |= bit;
    else if (std::find(stops_.begin(), stops_.end(), token) == stops_.end())
      mask_[word] &= ~bit;
  }
  const bool any = std::any_of(mask_.begin(), mask_.end(), [](std::uint64_t bits) { return bits != 0; });
  return any ? std::span<const std::uint64_t>(mask_) : std::span<const std::uint64_t>();
}

bool answer_form::add(std::span<const token_id> written) {
  if (generation_ != constraint_->generation())
    find_state(written);
  else
    state_ = constraint_->after(state_, written.back());
  return constraint_->goes_on(state_);
}

}  // namespace troupe
