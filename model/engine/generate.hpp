#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/arch/single_sequence.hpp"
#include "model/engine/sampling/sampler.hpp"
#include "model/engine/scheduling/sequence_request.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

struct generation {
  std::vector<token_id> tokens;  ///< of the answer, the end token left out
  std::string text;              ///< cut before a stop string
  end_reason reason = end_reason::length;
  std::vector<sampled_token> details;  ///< parallel to tokens, where logprobs were asked for
};

/// Answers one prompt. `on_text` gets the text as it becomes certain. Throws input_error if the prompt is empty or
/// leaves no room in the context, or if the constraint is wrong. Special tokens are text unless `skip_special`.
generation generate(single_sequence& sequence, const kernel_table& kernels,
                    const std::shared_ptr<const tokenizer>& tokens, std::span<const token_id> end_tokens,
                    std::span<const token_id> prompt, const sampling_params& params,
                    const std::function<void(std::string_view)>& on_text, bool skip_special = true);

}  // namespace troupe
