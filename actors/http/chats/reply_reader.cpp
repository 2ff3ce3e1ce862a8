#include "actors/http/chats/reply_reader.hpp"

#include <utility>

#include "base/ascii.hpp"

namespace troupe {

bool would_have_gone_on(const answer_end& end) {
  const auto closes_call = [](std::string_view text) {
    const auto closes = [&](tool_style style) { return text == notation_of(style).tags.closing; };
    return closes(tool_style::tagged) || closes(tool_style::unquoted);
  };
  const bool cuts = end.stopped_by.text && !closes_call(*end.stopped_by.text);
  return end.finish == "length" || cuts || end.stopped_by.token;
}

std::vector<reply_piece> reply_reader::push(std::string_view text) {
  take_said(thoughts_.push(text));
  return std::exchange(pieces_, {});
}

std::vector<reply_piece> reply_reader::finish(bool is_cut) {
  take_said(thoughts_.finish());
  take_answer(calls_.finish(is_cut));
  const bool is_all_there_is = !has_said_ && !blank_.empty();
  if (is_all_there_is) pieces_.push_back({reply_piece::kind::text, std::exchange(blank_, {})});
  return std::exchange(pieces_, {});
}

std::vector<reply_piece> reply_reader::read_whole(std::string_view text, bool is_cut) {
  std::vector<reply_piece> whole = push(text);
  for (reply_piece& each : finish(is_cut)) {
    const bool goes_on = !whole.empty() && whole.back().is == each.is && each.is != reply_piece::kind::call;
    if (goes_on)
      whole.back().text += each.text;
    else
      whole.push_back(std::move(each));
  }
  return whole;
}

void reply_reader::take_said(const thought_reader::said& said) {
  if (!said.thought.empty()) pieces_.push_back({reply_piece::kind::thought, said.thought});
  thought_ += said.thought;
  take_answer(calls_.push(said.answer));
}

/// Text, and the calls that stand in it.
void reply_reader::take_answer(std::string_view text) {
  std::size_t taken = 0;
  for (tool_call& call : calls_.take_calls()) {
    take_text(text.substr(taken, call.behind - taken));
    taken = call.behind;
    blank_.clear();
    in_text_ = false;
    has_said_ = true;
    is_call_cut_ = call.is_cut;
    pieces_.push_back({reply_piece::kind::call, {}, std::move(call)});
  }
  take_text(text.substr(taken));
}

void reply_reader::take_text(std::string_view text) {
  blank_ += text;
  if (in_text_ ? blank_.empty() : is_blank(blank_)) return;
  in_text_ = has_said_ = true;
  pieces_.push_back({reply_piece::kind::text, std::exchange(blank_, {})});
}

}  // namespace troupe
