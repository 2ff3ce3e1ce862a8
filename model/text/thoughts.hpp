// Tells what a model thinks from what it answers: models that think do so first, between <think> and </think> or the
// like, or in channels.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/text/channels.hpp"

namespace troupe {

struct thought_tags {
  std::string_view begin, end;
  std::string_view answer_begin = {}, answer_end = {};  ///< what may stand around the answer; empty: nothing does
  bool answers_alone = true;                            ///< the marks may come without a thought before them
};

/// Tags that are special tokens in models with this chat template; empty if it knows none.
thought_tags special_tags_of(std::string_view chat_template);
/// Whether special tokens tell thoughts from answers: then texts must have them.
bool shows_special(std::string_view chat_template);

/// Reads an answer piece by piece. White space around a thought belongs to neither; nor does what is next to the marks
/// of an answer belong to that.
class thought_reader {
 public:
  using said = said_text;
  /// Where the template does not know the tags, all is answer.
  explicit thought_reader(std::string_view chat_template);
  /// The tags' texts must outlive it.
  explicit thought_reader(const thought_tags& tags) : tags_(tags), place_(place::before) {}

  /// The text of the message that the answer goes on with, which may have begun a thought.
  void go_on_with(std::string_view message);
  /// How the prompt ends, before anything is read: some templates begin the thought.
  void follow(std::string_view prompt_end);
  said push(std::string_view piece);
  said finish();

 private:
  enum class place : std::uint8_t { before, inside, behind, in_marks, in_answer };
  void read(said& to);
  void read_beginning(said& to);
  void read_thought(said& to);
  void read_mark();
  void read_marked_answer(said& to);
  std::string take_up_to(std::string_view end, bool& has_begun);
  void read_answer(said& to);

  std::optional<channel_reader> channels_;
  thought_tags tags_;
  place place_ = place::in_answer;
  bool has_begun_ = false;     ///< the thought has a letter
  bool has_answered_ = false;  ///< so has an answer between marks
  std::string held_;
};

/// A whole answer without the thought that it begins with.
std::string without_thoughts(std::string_view said, const thought_tags& tags);

}  // namespace troupe
