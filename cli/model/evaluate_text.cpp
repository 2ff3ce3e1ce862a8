#include "cli/model/evaluate_text.hpp"

#include <algorithm>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "cli/progress.hpp"
#include "cli/standard_input.hpp"
#include "model/train/data/training_data.hpp"

namespace troupe {
namespace {

/// evaluate() reads windows as long as the cache: at most the context, and no more than the text can fill. A token
/// stands for at least one byte, except for a few that stand for none.
std::int64_t window_for(const runtime& run, const mapped_file& text) {
  return std::min(run.context(), static_cast<std::int64_t>(text.text().size()) + block_tokens);
}

}  // namespace

mapped_file text_in(const std::string& file) {
  mapped_file text =
      file == "-" ? mapped_file(keep_standard_input().number(), std::string(standard_input_name)) : mapped_file(file);
  if (const std::size_t number = line_with_example(text.text()))
    refuse("{}: line {} is an example in JSON: give plain text, or measure examples by troupe eval --data", text.name(),
           number);
  return text;
}

evaluation evaluate_text(runtime& run, const tokenizer& tokens, const mapped_file& text, const std::string& what) {
  const std::int64_t positions = window_for(run, text);
  single_sequence sequence = run.sequence(positions, positions);
  progress bar(what);
  return evaluate(sequence, run.kernels(), tokens, text.text(),
                  [&](std::int64_t done, std::int64_t total) { bar.update(done, total); });
}

}  // namespace troupe
