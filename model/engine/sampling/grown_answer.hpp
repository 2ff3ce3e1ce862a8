#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/engine/sampling/answer_form.hpp"
#include "model/engine/sampling/sampler.hpp"
#include "model/engine/sampling/sampling_history.hpp"

namespace troupe {

/// A prompt, and the answer that grows behind it. What comes next depends on these, the parameters and the logits
/// alone.
class grown_answer {
 public:
  /// `ends`: the tokens that end it. `text`: the prompt, and the answer so far where one is resumed.
  grown_answer(const sampling_params& params, std::vector<token_id> ends, std::span<const token_id> text,
               std::size_t prompt_tokens);
  /// The constraint of its parameters: nothing can follow until it is here.
  void keep_to(std::shared_ptr<token_constraint> constraint);

  const sampling_params& params() const { return params_; }
  std::span<const token_id> text() const { return text_; }
  std::span<const token_id> written() const { return text().subspan(prompt_tokens_); }
  bool has_form() const { return form_.has_value(); }
  bool is_end(token_id token) const;
  bool is_full() const { return static_cast<std::int64_t>(written().size()) >= params_.max_tokens; }
  /// The tokens that end it, if they may not come yet.
  std::span<const token_id> barred() const { return barred_ends(ends_, params_, written().size()); }

  /// The token after the text; none where nothing can follow.
  std::optional<sampled_token> choose(sampler& by, std::span<const float> logits);
  /// Appends a token that does not end it. False where nothing can follow.
  bool add(token_id token);
  /// Where nothing can follow: false where that cuts it short.
  bool is_complete() const { return form_ && form_->is_complete(); }

 private:
  sampling_params params_;
  std::vector<token_id> ends_, text_;
  std::size_t prompt_tokens_;
  sampling_history history_;
  std::optional<answer_form> form_;
};

}  // namespace troupe
