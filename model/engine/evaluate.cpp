#include "model/engine/evaluate.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/engine/sampling/vocabulary_scan.hpp"
#include "model/text/documents.hpp"
#include "model/text/model_text.hpp"

namespace troupe {
namespace {

/// -log of the probability that `logits` give to `token`.
double surprise(const kernel_table& kernels, std::span<const float> logits, token_id token) {
  const float most = *std::max_element(logits.begin(), logits.end());
  return detail::log_of_sum(kernels, logits, most) + most - logits[to_size(token)];
}

using token_documents = std::vector<std::vector<token_id>>;

token_documents encoded(std::string_view text, const tokenizer& tokens, std::int64_t vocab_size) {
  token_documents all;
  for (const text_document& document : documents_of(text)) {
    auto own = tokens_of_document(tokens, document.text);
    if (own.empty()) continue;
    check_tokens(own, vocab_size);
    all.push_back(std::move(own));
  }
  return all;
}

/// The first token of a document is given.
std::int64_t tokens_to_predict(const token_documents& documents) {
  std::int64_t count = 0;
  for (const auto& document : documents) count += static_cast<std::int64_t>(document.size()) - 1;
  return count;
}

/// Calls `on_token(logits, token)` for every token of a document that is predicted, and `on_window()` after each
/// window.
void read_in_windows(single_sequence& sequence, std::span<const token_id> document,
                     const std::function<void(std::span<const float> logits, token_id token)>& on_token,
                     const std::function<void()>& on_window) {
  std::size_t counted = 1;
  for (std::size_t start = 0; counted < document.size();) {
    sequence.restart();
    const auto window = to_size(sequence.room());
    const auto part = document.subspan(start, std::min(window, document.size() - start));
    sequence.feed(part, [&](std::size_t index, std::span<const float> logits) {
      const std::size_t target = start + index + 1;
      if (target < counted || index + 1 >= part.size()) return;
      on_token(logits, document[target]);
      counted = target + 1;
    });
    on_window();
    start += std::max<std::size_t>(window / 2, 1);
  }
}

}  // namespace

double evaluation::perplexity() const {
  return std::exp(nll);
}

evaluation evaluate(single_sequence& sequence, const kernel_table& kernels, const tokenizer& tokens,
                    std::string_view text, const std::function<void(std::int64_t, std::int64_t)>& progress) {
  sequence.restart();
  if (sequence.room() < 2) refuse("the context is {}: predicting takes a context of 2 or more", sequence.room());
  const token_documents documents = encoded(text, tokens, sequence.vocab_size());
  const std::int64_t total = tokens_to_predict(documents);
  if (total <= 0) refuse("the text has no token to predict: give a longer text");
  evaluation result;
  double sum = 0;
  const auto add = [&](std::span<const float> logits, token_id token) {
    sum += surprise(kernels, logits, token);
    ++result.tokens;
  };
  const auto show = [&] {
    if (progress) progress(result.tokens, total);
  };
  for (const auto& document : documents) read_in_windows(sequence, document, add, show);
  result.nll = sum / static_cast<double>(result.tokens);
  return result;
}

}  // namespace troupe
