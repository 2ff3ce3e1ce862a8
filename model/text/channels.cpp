#include "model/text/channels.hpp"

#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "model/text/tags.hpp"

namespace troupe {
namespace {

constexpr std::string_view start_mark = "<|start|>", channel_mark = "<|channel|>", body_mark = "<|message|>";
constexpr std::string_view recipient = "to=", function = "functions.";
/// What ends a message. The model's own end tokens are no part of the text.
constexpr std::array<std::string_view, 5> message_ends{"<|end|>", call_end, "<|return|>", start_mark, channel_mark};
constexpr std::size_t longest_header = 1024;

/// The word behind `mark`; empty where there is none.
std::string_view word_behind(std::string_view header, std::string_view mark) {
  const std::size_t at = header.find(mark);
  if (at == header.npos) return {};
  const std::string_view rest = header.substr(at + mark.size());
  return rest.substr(0, rest.find_first_of(" <\n"));
}

/// Whether a text that begins so may be the rest of a header.
bool may_be_header(std::string_view text) {
  const std::string_view begun = text.substr(first_not_blank(text));
  const auto fits = [&](std::string_view mark) { return begun.starts_with(mark) || mark.starts_with(begun); };
  return fits(start_mark) || fits(channel_mark) || fits(recipient);
}

bool has_begun_header(std::string_view text) {
  const std::string_view begun = text.substr(first_not_blank(text));
  return begun.starts_with(start_mark) || begun.starts_with(channel_mark) || begun.starts_with(recipient);
}

/// Of the first end in a text: where it is, and how much of it goes with the message.
struct found_end {
  std::size_t at = std::string_view::npos, length = 0;
};
found_end find_end(std::string_view text) {
  found_end first;
  for (const std::string_view each : message_ends)
    if (const std::size_t at = text.find(each); at < first.at)
      first = {at, each == start_mark || each == channel_mark ? 0 : each.size()};
  return first;
}

std::size_t beginning_of_end(std::string_view text) {
  std::size_t most = 0;
  for (const std::string_view each : message_ends) most = std::max(most, beginning_of(each, text));
  return most;
}

}  // namespace

bool has_channels(std::string_view chat_template) {
  return chat_template.find("<|channel|>analysis") != chat_template.npos &&
         chat_template.find("<|channel|>final") != chat_template.npos;
}

/// A message that is being continued may have begun long before.
void channel_reader::follow(std::string_view prompt_end) {
  const std::size_t body = prompt_end.rfind(body_mark), header = prompt_end.rfind(start_mark);
  const bool has_header = header != prompt_end.npos, has_body = body != prompt_end.npos;
  if (has_header && (!has_body || body < header)) return;
  place_ = place::body;
  has_begun_ = true;
  if (has_body && word_behind(prompt_end.substr(has_header ? header : 0, body), channel_mark) == "analysis")
    is_ = content::thought;
}

said_text channel_reader::push(std::string_view piece) {
  said_text now;
  held_ += piece;
  bool goes_on = true;
  while (goes_on && !held_.empty()) switch (place_) {
      case place::before:
        goes_on = read_beginning();
        break;
      case place::header:
        goes_on = read_header(now);
        break;
      case place::body:
        goes_on = read_body(now);
    }
  return now;
}

/// A header that was cut says nothing.
said_text channel_reader::finish() {
  said_text last;
  if (place_ == place::body || !has_begun_header(held_)) add(held_, last);
  held_.clear();
  return last;
}

/// What is neither a header nor could become one is a text without it.
bool channel_reader::read_beginning() {
  place_ = may_be_header(held_) ? place::header : place::body;
  return true;
}

bool channel_reader::read_header(said_text& to) {
  const std::size_t at = held_.find(body_mark);
  if (at == held_.npos) {
    if (may_be_header(held_) && held_.size() < longest_header) return false;
    place_ = place::body;
    return true;
  }
  begin_body(std::string_view(held_).substr(0, at), to);
  held_.erase(0, at + body_mark.size());
  place_ = place::body;
  return true;
}

void channel_reader::begin_body(std::string_view header, said_text& to) {
  const std::string_view called = word_behind(header, recipient);
  has_begun_ = false;
  if (called.starts_with(function)) {
    is_ = content::call;
    to.answer.append(call_begin).append(called.substr(function.size())).append(call_body);
  } else {
    is_ = word_behind(header, channel_mark) == "analysis" && called.empty() ? content::thought : content::text;
  }
}

bool channel_reader::read_body(said_text& to) {
  const found_end found = find_end(held_);
  const bool ends_here = found.at != held_.npos;
  const std::size_t certain = ends_here ? found.at : held_.size() - beginning_of_end(held_);
  add(std::string_view(held_).substr(0, certain), to);
  held_.erase(0, certain + found.length);
  if (!ends_here) return false;
  if (is_ == content::call) to.answer += call_end;
  place_ = place::before;
  return true;
}

/// Messages of one kind are told apart by lines.
void channel_reader::add(std::string_view text, said_text& to) {
  if (text.empty()) return;
  std::string& into = is_ == content::thought ? to.thought : to.answer;
  bool& has_some = is_ == content::thought ? has_thought_ : has_text_;
  if (is_ != content::call) {
    if (!has_begun_ && has_some) into += '\n';
    has_some = true;
  }
  has_begun_ = true;
  into += text;
}

std::string without_thoughts(std::string_view said) {
  channel_reader reader;
  std::string answer = reader.push(said).answer;
  return answer += reader.finish().answer;
}

}  // namespace troupe
