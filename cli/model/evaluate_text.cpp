#include "cli/model/evaluate_text.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/to_size.hpp"
#include "cli/progress.hpp"

namespace troupe {
namespace {

/// evaluate() reads windows as long as the cache: at most the context, and no more than the text can fill. A token
/// stands for at least one byte, except for a few that stand for none.
std::int64_t window_for(const runtime& run, const mapped_file& text) {
  return std::min(run.context(), static_cast<std::int64_t>(text.text().size()) + block_tokens);
}

/// Kept in memory, as nobody knows how much comes.
mapped_file standard_input() {
  const file_descriptor kept(::memfd_create("standard input", MFD_CLOEXEC));
  std::string piece(1 << 16, '\0');
  ssize_t count = 0;
  while ((count = ::read(STDIN_FILENO, piece.data(), piece.size())) != 0)
    if (count < 0 || !write_all(kept.number(), std::string_view(piece).substr(0, to_size(count))))
      refuse("standard input: cannot be read: {}", std::strerror(errno));
  return {kept.number(), "standard input"};
}

}  // namespace

mapped_file text_in(const std::string& file) {
  return file == "-" ? standard_input() : mapped_file(file);
}

evaluation evaluate_text(runtime& run, const tokenizer& tokens, const mapped_file& text, const std::string& what) {
  const std::int64_t positions = window_for(run, text);
  single_sequence sequence = run.sequence(positions, positions);
  progress bar(what);
  return evaluate(sequence, run.kernels(), tokens, text.text(),
                  [&](std::int64_t done, std::int64_t total) { bar.update(done, total); });
}

}  // namespace troupe
