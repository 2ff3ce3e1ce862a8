#include "model/engine/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/error.hpp"
#include "model/engine/documents.hpp"
#include "model/engine/logarithm.hpp"

namespace troupe {
namespace {

/// -log of the probability that `logits` give to `token`.
class surprise {
 public:
  explicit surprise(const kernel_table& kernels) : kernels_(kernels) {}
  double operator()(std::span<const float> logits, token_id token) {
    padded_.assign(static_cast<std::size_t>(rounded_up(static_cast<std::int64_t>(logits.size()), 16)),
                   -std::numeric_limits<float>::infinity());
    std::copy(logits.begin(), logits.end(), padded_.begin());
    const float most = *std::max_element(logits.begin(), logits.end());
    const float sum =
        kernels_.exponentials(padded_.data(), static_cast<std::int64_t>(padded_.size()), most, padded_.data());
    return logarithm(sum) + most - logits[static_cast<std::size_t>(token)];
  }

 private:
  const kernel_table& kernels_;
  std::vector<float> padded_;
};

}  // namespace

double evaluation::perplexity() const {
  return std::exp(nll);
}

evaluation evaluate(single_sequence& sequence, const kernel_table& kernels, const tokenizer& tokens,
                    std::string_view text, const std::function<void(std::int64_t, std::int64_t)>& progress) {
  sequence.restart();
  if (sequence.room() < 2) refuse("the context is {}: predicting takes a context of 2 or more", sequence.room());
  std::vector<std::vector<token_id>> documents;
  std::int64_t total = 0;
  for (const text_document& document : documents_of(text)) {
    auto encoded = tokens.encode(document.text, {.add_special = true, .parse_special = false});
    if (encoded.empty()) continue;
    documents.push_back(std::move(encoded));
    for (const token_id token : documents.back())
      if (token >= sequence.vocab_size())
        refuse("the text has token {}, the model {} tokens: the tokenizer belongs to another model", token,
               sequence.vocab_size());
    total += static_cast<std::int64_t>(documents.back().size()) - 1;
  }
  if (total <= 0) refuse("the text has no token to predict: give a longer text");
  evaluation result;
  surprise surprise_of(kernels);
  double sum = 0;
  for (const auto& document : documents) {
    std::size_t counted = 1;  // the first token is given
    for (std::size_t start = 0; counted < document.size();) {
      sequence.restart();
      const std::size_t window = static_cast<std::size_t>(sequence.room());
      const auto part = std::span(document).subspan(start, std::min(window, document.size() - start));
      sequence.feed(part, [&](std::size_t index, std::span<const float> logits) {
        const std::size_t target = start + index + 1;
        if (target < counted || target >= document.size() || index + 1 >= part.size()) return;
        sum += surprise_of(logits, document[target]);
        ++result.tokens;
        counted = target + 1;
      });
      if (progress) progress(result.tokens, total);
      start += std::max<std::size_t>(window / 2, 1);
    }
  }
  result.nll = sum / static_cast<double>(result.tokens);
  return result;
}

}  // namespace troupe
