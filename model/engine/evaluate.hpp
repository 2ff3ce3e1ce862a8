#pragma once
#include <cstdint>
#include <functional>
#include <string_view>

#include "model/arch/single_sequence.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

struct evaluation {
  std::int64_t tokens = 0;  ///< that were predicted
  double nll = 0;           ///< mean over them, in nats
  double perplexity() const;
};

/// How well the model predicts a text. Documents are separated by "<|endoftext|>"; each starts with BOS where the model
/// has one. A document longer than the context is read in windows that overlap by half, each token counted once.
evaluation evaluate(single_sequence& sequence, const kernel_table& kernels, const tokenizer& tokens,
                    std::string_view text, const std::function<void(std::int64_t done, std::int64_t total)>& progress);

}  // namespace troupe
