#pragma once
#include <optional>
#include <string>
#include <utility>

#include "model/engine/sampling/stop_matcher.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {

/// The text of an answer, as it becomes certain: in whole characters, and with nothing that may yet be a stop string.
/// Copies share the stop strings.
class certain_text {
 public:
  certain_text(stream_decoder decoder, stop_matcher stops) : decoder_(std::move(decoder)), stops_(std::move(stops)) {}

  /// What became certain with this token; nothing more once stopped() is true. `stops_count`: a stop string that ends
  /// in it is one.
  std::string push(token_id token, bool stops_count);
  /// What was held back. `last`: of the text, too, though it ended the answer.
  std::string finish(std::optional<token_id> last = {});

  bool stopped() const { return stops_.stopped(); }
  /// The stop string that was found; nullptr before.
  const std::string* matched() const { return stops_.matched(); }

 private:
  stream_decoder decoder_;
  stop_matcher stops_;
  bool stops_count_ = false;  ///< as they did for the last token
};

}  // namespace troupe
