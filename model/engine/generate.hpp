#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/arch/single_sequence.hpp"
#include "model/engine/sampling/sampler.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

enum class finish : std::uint8_t { stop, length };
std::string_view name_of(finish reason);

struct generation {
  std::vector<token_id> tokens;  ///< of the answer, the end token left out
  std::string text;              ///< cut before a stop string
  finish reason = finish::length;
  std::vector<sampled_token> details;  ///< parallel to tokens, where logprobs were asked for
};

/// Answers one prompt. `on_text` gets the text as it becomes certain. Throws input_error if the prompt is empty or
/// leaves no room in the context, or if the constraint is wrong. Special tokens are text unless `skip_special`.
generation generate(single_sequence& sequence, const kernel_table& kernels,
                    const std::shared_ptr<const tokenizer>& tokens, std::span<const token_id> end_tokens,
                    std::span<const token_id> prompt, const sampling_params& params,
                    const std::function<void(std::string_view)>& on_text, bool skip_special = true);

}  // namespace troupe
