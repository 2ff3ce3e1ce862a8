#include "model/text/thoughts.hpp"

#include <utility>

#include "base/ascii.hpp"
#include "model/text/tags.hpp"

namespace troupe {
namespace {

constexpr thought_tags usual_tags{"<think>", "</think>"},
    ernie_tags{"<think>", "</think>", "<response>", "</response>", false}, mistral_tags{"[THINK]", "[/THINK]"},
    gemma_4_tags{"<|channel>thought", "<channel|>"}, seed_tags{"<seed:think>", "</seed:think>"},
    cohere_tags{"<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>"};

}  // namespace

thought_tags special_tags_of(std::string_view chat_template) {
  for (const thought_tags& each : {gemma_4_tags, mistral_tags, seed_tags, cohere_tags})
    if (chat_template.find(each.end) != chat_template.npos) return each;
  return {};
}

bool shows_special(std::string_view chat_template) {
  return has_channels(chat_template) || !special_tags_of(chat_template).begin.empty();
}

thought_reader::thought_reader(std::string_view chat_template) : tags_(special_tags_of(chat_template)) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != chat_template.npos; };
  if (tags_.begin.empty()) tags_ = has(ernie_tags.answer_end) ? ernie_tags : usual_tags;
  if (has(tags_.end)) place_ = place::before;
  if (has_channels(chat_template)) channels_.emplace();
}

/// As an answer is read: a tag further on is only spoken of.
void thought_reader::go_on_with(std::string_view message) {
  if (channels_) return channels_->follow(message);
  const std::string_view text = message.substr(first_not_blank(message));
  if (place_ != place::before || text.empty()) return;
  const bool is_open = text.starts_with(tags_.begin) && text.find(tags_.end) == text.npos;
  place_ = is_open ? place::inside : tags_.answer_begin.empty() ? place::in_answer : place::in_marks;
  has_answered_ = !is_open;
  has_begun_ = is_open && !is_blank(text.substr(tags_.begin.size()));
}

void thought_reader::follow(std::string_view prompt_end) {
  if (channels_) return channels_->follow(prompt_end);
  const std::string_view written = without_blanks_behind(prompt_end);
  if (place_ != place::before) return;
  if (written.ends_with(tags_.begin))
    place_ = place::inside;
  else if (!tags_.answer_begin.empty() && written.ends_with(tags_.answer_begin))
    place_ = place::in_marks;
}

thought_reader::said thought_reader::push(std::string_view piece) {
  if (channels_) return channels_->push(piece);
  said now;
  held_ += piece;
  read(now);
  return now;
}

thought_reader::said thought_reader::finish() {
  if (channels_) return channels_->finish();
  said last;
  if (place_ == place::inside)
    last.thought = without_blanks_behind(held_);
  else
    last.answer = held_;
  held_.clear();
  return last;
}

void thought_reader::read(said& to) {
  if (place_ == place::before) read_beginning(to);
  if (place_ == place::inside) read_thought(to);
  if (place_ == place::behind) read_mark();
  if (place_ == place::in_marks) read_marked_answer(to);
  if (place_ == place::behind || place_ == place::in_answer) read_answer(to);
}

void thought_reader::read_beginning(said& to) {
  const std::string_view text = std::string_view(held_).substr(first_not_blank(held_));
  // What is a text and no special token may be an answer's own, as the root of XML is.
  const std::string_view mark = tags_.answers_alone ? tags_.answer_begin : std::string_view();
  if (text.starts_with(tags_.begin)) {
    held_.erase(0, held_.size() - text.size() + tags_.begin.size());
    place_ = place::inside;
  } else if (!mark.empty() && text.starts_with(mark)) {
    place_ = place::behind;
  } else if (!tags_.begin.starts_with(text) && !mark.starts_with(text)) {
    place_ = place::in_answer;
    to.answer = std::exchange(held_, {});
  }
}

/// Without the white space around it, as far as it is certain; what remains is behind `end` once that has come.
std::string thought_reader::take_up_to(std::string_view end, bool& has_begun) {
  if (!has_begun) held_.erase(0, first_not_blank(held_));
  has_begun |= !held_.empty();
  const std::size_t at = held_.find(end);
  const std::size_t certain = at == held_.npos ? held_.size() - beginning_of(end, held_) : at;
  std::string taken(without_blanks_behind(std::string_view(held_).substr(0, certain)));
  held_.erase(0, at == held_.npos ? taken.size() : at + end.size());
  if (at != held_.npos) place_ = place::behind;
  return taken;
}

void thought_reader::read_thought(said& to) {
  to.thought = take_up_to(tags_.end, has_begun_);
}

void thought_reader::read_mark() {
  held_.erase(0, first_not_blank(held_));
  if (tags_.answer_begin.empty() || !held_.starts_with(tags_.answer_begin)) return;
  held_.erase(0, tags_.answer_begin.size());
  place_ = place::in_marks;
}

void thought_reader::read_marked_answer(said& to) {
  to.answer += take_up_to(tags_.answer_end, has_answered_);
  if (place_ == place::behind) tags_.answer_begin = {};  // there is one answer
}

void thought_reader::read_answer(said& to) {
  if (place_ == place::behind) {
    held_.erase(0, first_not_blank(held_));
    if (tags_.answer_begin.starts_with(held_)) return;
  }
  place_ = place::in_answer;
  to.answer += std::exchange(held_, {});
}

std::string without_thoughts(std::string_view said, const thought_tags& tags) {
  thought_reader reader(tags);
  std::string answer = reader.push(said).answer;
  return answer += reader.finish().answer;
}

}  // namespace troupe
