#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/engine/sampling/sampling_params.hpp"
#include "model/grammar/token_constraint.hpp"

namespace troupe {

/// Gives the tokens of the model; asked when the first constraint comes.
using token_tree_source = std::function<std::shared_ptr<const token_tree>()>;
/// The tokens of `tokens`, made when they are asked for and kept.
token_tree_source token_tree_from(std::function<std::shared_ptr<const tokenizer>()> open, std::int64_t vocab_size);

/// What one answer may go on with. Depends on the constraint and the tokens written so far, on nothing else.
class answer_form {
 public:
  /// `ends`: the tokens that end the answer; `written`: of an answer that is resumed.
  answer_form(std::shared_ptr<token_constraint> constraint, const sampling_params& params, std::vector<token_id> ends,
              std::span<const token_id> written);

  /// A bit for every token that may come next: of the text, or one that ends the answer where it is complete. A stop
  /// token that the request names ends the answer wherever the text may go on with it. Empty where there is none.
  /// Stays until the next call.
  std::span<const std::uint64_t> allowed(std::span<const token_id> written);
  /// `written` ends with the token that is new. False where nothing can follow: the answer is over.
  bool add(std::span<const token_id> written);
  /// Of an answer that is over: false where a limit of forms cuts it short.
  bool is_complete() const { return constraint_->is_complete(state_); }

 private:
  void find_state(std::span<const token_id> written);

  std::shared_ptr<token_constraint> constraint_;
  std::vector<token_id> ends_;
  std::vector<token_id> stops_;  ///< those of them that the request names
  token_constraint::state state_ = 0;
  std::uint64_t generation_ = 0;
  token_mask mask_;
};

}  // namespace troupe
