#include "model/train/data/example_parts.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

bool is_learned(const training_example& example) {
  return std::find(example.learned.begin() + 1, example.learned.end(), 1) != example.learned.end();
}

}  // namespace

std::size_t shared_beginning(const std::vector<token_id>& a, const std::vector<token_id>& b) {
  return to_size(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

void end_text(std::vector<token_id>& tokens, const data_format& format) {
  const auto& ends = format.end_tokens;
  if (!ends.empty() && (tokens.empty() || tokens.back() != ends.front())) tokens.push_back(ends.front());
}

training_example with_learned(std::vector<token_id> tokens, std::size_t first_learned) {
  training_example example;
  example.learned.assign(tokens.size(), 0);
  std::fill(example.learned.begin() + static_cast<std::ptrdiff_t>(std::min(first_learned, tokens.size())),
            example.learned.end(), 1);
  example.tokens = std::move(tokens);
  return example;
}

void add_to(line_examples& made, training_example example, const data_format& format) {
  if (example.tokens.size() < 2) refuse("has fewer than two tokens");
  const auto most = to_size(format.row_length + 1);
  if (example.tokens.size() > most) {
    ++made.losses.shortened;
    example.tokens.resize(most), example.tokens.shrink_to_fit();
    example.learned.resize(most), example.learned.shrink_to_fit();
  }
  if (is_learned(example)) made.examples.push_back(std::move(example));
}

}  // namespace troupe::detail
