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

struct prompt_to_answer {
  std::span<const token_id> prompt, end_tokens;
  const sampling_params& params;
  std::shared_ptr<const tokenizer> tokens;
  std::function<void(std::string_view)> on_text = {};  ///< gets the text as it becomes certain
  bool skip_special = true;                            ///< else special tokens are text
};

/// Answers one prompt. Throws input_error if the prompt is empty or leaves no room in the context, or if the constraint
/// is wrong.
generation generate(single_sequence& sequence, const kernel_table& kernels, const prompt_to_answer& asked);

/// Throws input_error if a prompt of so many tokens leaves no room in the context.
void check_length(std::size_t prompt, std::int64_t context);

}  // namespace troupe
