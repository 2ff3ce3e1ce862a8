// What a model thinks, says and calls, in the order in which it wrote it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/http/chats/tool_calls.hpp"
#include "actors/requests/answer_listener.hpp"
#include "model/text/thoughts.hpp"

namespace troupe {

struct reply_piece {
  enum class kind : std::uint8_t { thought, text, call };
  kind is;
  std::string text = {};  ///< of a thought or a text
  tool_call call = {};
};

/// Whether an answer would have gone on: a limit ended it, or what its request named. A stop text that closes a call
/// does not cut it.
bool would_have_gone_on(const answer_end& end);

/// Reads an answer piece by piece. White space that is all there is before a call, or behind the last one, is left out.
class reply_reader {
 public:
  reply_reader(thought_reader thoughts, tool_call_reader calls)
      : thoughts_(std::move(thoughts)), calls_(std::move(calls)) {}

  /// How the prompt ends, before anything is read.
  void follow(std::string_view prompt_end) { thoughts_.follow(prompt_end); }
  /// Returns what has become certain.
  std::vector<reply_piece> push(std::string_view text);
  /// Ends the answer. `is_cut`: it would have gone on.
  std::vector<reply_piece> finish(bool is_cut);
  /// A whole answer at once: thought, texts and calls each in one piece.
  std::vector<reply_piece> read_whole(std::string_view text, bool is_cut);
  /// Whether there are calls whose results it waits for: one that was cut is not to be made.
  bool waits_for_results() const { return calls_.has_calls() && !is_call_cut_; }
  const std::string& thought() const { return thought_; }  ///< what it has thought until now

 private:
  void take_said(const thought_reader::said& said);
  void take_answer(std::string_view text);
  void take_text(std::string_view text);

  thought_reader thoughts_;
  tool_call_reader calls_;
  std::string thought_;
  std::string blank_;  ///< white space that belongs to the next text, if there is one
  bool in_text_ = false, has_said_ = false, is_call_cut_ = false;
  std::vector<reply_piece> pieces_;  ///< that are about to be returned
};

}  // namespace troupe
