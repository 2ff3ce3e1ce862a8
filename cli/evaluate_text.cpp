#include "cli/evaluate_text.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "cli/progress.hpp"

namespace troupe {

evaluation evaluate_text(runtime& run, const tokenizer& tokens, const text_file& text, const std::string& what) {
  const std::int64_t vocabulary = run.model().config.vocab_size;
  if (tokens.size() > vocabulary)
    refuse("the tokenizer has {} tokens, the model {}: put the tokenizer there that belongs to the model",
           tokens.size(), vocabulary);
  // A window is all that the cache holds, and a cache holds whole blocks.
  const std::int64_t whole_blocks = run.context() / positions_per_block * positions_per_block;
  const std::int64_t positions = std::max(whole_blocks, positions_per_block);
  single_sequence sequence = run.sequence(positions, positions);
  progress bar(what);
  return evaluate(sequence, run.kernels(), tokens, text.text(),
                  [&](std::int64_t done, std::int64_t total) { bar.update(done, total); });
}

}  // namespace troupe
