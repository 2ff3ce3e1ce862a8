#include "actors/http/chats/tool_calls.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "actors/http/chats/tool_call_text.hpp"
#include "actors/http/chats/unquoted_json.hpp"
#include "base/ascii.hpp"
#include "model/text/tags.hpp"

namespace troupe {
namespace {

constexpr std::size_t longest_call = 1 << 20;

/// Where the tag begins that closes a call; npos while it goes on. A tag in a text of its JSON closes nothing.
std::size_t closing_of(std::string_view call, const call_tags& tags, end_search& search) {
  const std::string_view body = call.substr(tags.opening.size());
  const bool is_json = body.substr(first_not_blank(body)).starts_with('{');
  const std::size_t at = is_json ? search.outside_texts(body, tags.closing) : search.of_text(body, tags.closing);
  return at == body.npos ? at : tags.opening.size() + at;
}

/// Without what closes a block of Markdown, which `opening` opens, behind whole arguments.
std::string_view without_fence(std::string_view call, std::string_view opening) {
  const std::size_t body = call.find(opening);
  if (body == call.npos) return call;
  const std::size_t arguments = body + opening.size(), length = end_of_value(call.substr(arguments));
  const bool is_whole = length != call.npos && call.find_first_not_of("` \r\n", arguments + length) == call.npos;
  return is_whole ? call.substr(0, arguments + length) : call;
}

void take_tag(std::string_view& text, const sequence_form& form) {
  for (const std::string_view tag : form.tags)
    if (take(text, tag)) return;
}

/// Whether an answer that begins so could be calls.
bool may_be_calls(std::string_view text, const sequence_form& form) {
  const std::string_view begun = text.substr(first_not_blank(text));
  for (const std::string_view tag : form.tags)
    if (tag.starts_with(begun)) return true;
  take_tag(text, form);
  return is_blank(text) || (take(text, form.first) && (is_blank(text) || take(text, "{")));
}

/// False where it is none. Of one that was cut before its name was whole there is nothing, if others are before it.
bool keep_call(std::vector<tool_call>& calls, std::optional<tool_call> call, bool is_unnamed) {
  const bool is_call = call.has_value();
  if (is_call) calls.push_back(*std::move(call));
  return is_call || (is_unnamed && !calls.empty());
}

/// A call as JSON, or in tags.
std::optional<tool_call> read_call(std::string_view text, std::span<const tool_offer> offers, bool is_cut) {
  auto call = read_json_call(text, offers);
  if (!call && is_cut) call = read_cut_json_call(text, offers);
  if (!call) call = read_function_tags(text, offers, is_cut);
  if (!call) call = read_key_tags(text, offers, is_cut);
  return call;
}

}  // namespace

tool_call_reader::tool_call_reader(tool_style style, shared_offers offers, std::size_t most, bool is_call)
    : by_(notation_of(offers->empty() ? tool_style::none : style)), is_call_(is_call), most_(most) {
  if (by_.reads != call_text::none) offers_ = std::move(offers);
}

std::string tool_call_reader::push(std::string_view piece) {
  if (by_.reads == call_text::none || is_text_) return std::string(piece);
  held_ += piece;
  if (by_.has_tags())
    read_tagged();
  else
    read_sequence();
  return std::exchange(certain_, {});
}

void tool_call_reader::read_tagged() {
  const auto [opening, closing] = by_.tags;
  while (true) {
    if (!inside_) {
      const std::size_t at = held_.find(opening);
      std::size_t keep = at == held_.npos ? beginning_of(opening, held_) : held_.size() - at;
      take_text(std::string_view(held_).substr(0, held_.size() - keep));
      held_.erase(0, held_.size() - keep);
      if (at == held_.npos || !held_.starts_with(opening)) return;
      inside_ = true;
      end_ = {};
    }
    const std::size_t end = end_of_call();
    if (end == held_.npos && held_.size() < longest_call) return;
    inside_ = false;
    if (end == held_.npos) {
      is_text_ = true;
      return take_text(std::exchange(held_, {}));
    }
    const std::string_view call = std::string_view(held_).substr(0, end + closing.size());
    if (!take_tagged(call.substr(opening.size(), end - opening.size()), false)) take_text(call);
    held_.erase(0, call.size());
  }
}

/// Where what closes it begins; npos while it goes on.
std::size_t tool_call_reader::end_of_call() {
  switch (by_.reads) {
    case call_text::json:
    case call_text::tags:
    case call_text::invocations:
      return closing_of(held_, by_.tags, end_);
    case call_text::unquoted:
      return end_.outside_quotes(held_, text_mark, by_.tags.closing);
    default:
      return by_.tags.closing.empty() ? end_of_arguments() : end_.of_text(held_, by_.tags.closing);
  }
}

/// Where they end; npos while they go on.
std::size_t tool_call_reader::end_of_arguments() {
  const std::string_view body = by_.address->behind;
  const std::size_t at = held_.find(body);
  if (at == held_.npos) return at;
  const std::size_t arguments = at + body.size();
  const std::size_t length = end_.of_value(std::string_view(held_).substr(arguments));
  return length == held_.npos ? length : arguments + length;
}

/// Between two calls there is only white space, which is not part of the text.
void tool_call_reader::take_text(std::string_view text) {
  behind_call_ += text;
  if (is_behind_call_ && is_blank(behind_call_)) return;
  is_behind_call_ = false;
  certain_ += std::exchange(behind_call_, {});
}

/// Whether a sequence is one is certain when it has ended.
void tool_call_reader::read_sequence() {
  const bool may_be = by_.reads == call_text::headed ? may_be_headed() : may_be_calls(held_, by_.sequence);
  if (held_.size() < longest_call && may_be) return;
  is_text_ = true;
  certain_ = std::exchange(held_, {});
}

std::string tool_call_reader::finish(bool is_cut) {
  if (by_.reads == call_text::none || is_text_) return {};
  std::string rest = std::exchange(held_, {});
  if (!by_.has_tags()) {
    const bool any = by_.reads == call_text::headed ? take_headed(rest, is_cut) : take_sequence(rest, is_cut);
    return any || is_call_ ? std::string() : rest;
  }
  if (!inside_) return is_call_ ? std::string() : rest;
  const auto [opening, closing] = by_.tags;
  std::string_view call = rest;
  call.remove_prefix(opening.size());
  if (!closing.empty()) call.remove_suffix(beginning_of(closing, call));
  // Arguments that were left out and those that had not begun look alike where a mark or a tag stands before them.
  const bool is_whole = !(is_cut && by_.reads != call_text::json) && take_tagged(call, false);
  return is_whole || (is_cut && take_tagged(call, true)) || is_call_ ? std::string() : rest;
}

/// Whether what has come of the answer is the name of an offered function, or the beginning of one, or calls it.
bool tool_call_reader::may_be_headed() const {
  const std::string_view begun = std::string_view(held_).substr(first_not_blank(held_)), body = by_.address->behind;
  return std::ranges::any_of(*offers_, [&](const tool_offer& each) {
    if (std::string_view(each.name).starts_with(begun)) return true;
    if (!begun.starts_with(each.name)) return false;
    const std::string_view rest = begun.substr(each.name.size());
    return is_blank(rest) || (rest.starts_with(body) && rest.substr(first_not_blank(rest)).starts_with('{'));
  });
}

/// The calls of a whole answer, one behind the other; none where there is anything else.
bool tool_call_reader::take_headed(std::string_view text, bool is_cut) {
  std::vector<tool_call> calls;
  while (!is_blank(text)) {
    text.remove_prefix(first_not_blank(text));
    const std::size_t begin = std::min(text.find('{'), text.size()), length = end_of_value(text.substr(begin));
    const bool is_whole = length != text.npos, is_unnamed = !is_whole && begin == text.size();
    if (!is_whole && !is_cut) return false;
    const std::size_t end = is_whole ? begin + length : text.size();
    auto call = read_addressed_call(text.substr(0, end), by_.address->behind, *offers_, !is_whole);
    if (!keep_call(calls, std::move(call), is_unnamed)) return false;
    text.remove_prefix(end);
  }
  return add_all(std::move(calls));
}

/// The calls of a whole answer; none where there is anything else.
bool tool_call_reader::take_sequence(std::string_view text, bool is_cut) {
  const sequence_form& form = by_.sequence;
  std::vector<tool_call> calls;
  take_tag(text, form);
  if (!take(text, form.first)) return false;
  do {
    text.remove_prefix(first_not_blank(text));
    const std::size_t end = end_of_value(text);
    auto call = end == text.npos ? std::nullopt : read_json_call(text.substr(0, end), *offers_, by_.name_key);
    if (end == text.npos && is_cut) call = read_cut_json_call(text, *offers_, by_.name_key);
    if (!keep_call(calls, std::move(call), end == text.npos && is_cut)) return false;
    text.remove_prefix(std::min(end, text.size()));
  } while (take(text, form.between));
  if (!take(text, form.last) && !is_cut) return false;
  take(text, form.mark);
  return is_blank(text) && add_all(std::move(calls));
}

/// One call of a section, with its mark before it; moves `text` past it.
std::optional<tool_call> tool_call_reader::read_section_call(std::string_view& text, bool is_cut) const {
  const auto [opening, closing] = by_.inner;
  const call_address& address = *by_.address;
  take(text, opening);
  const std::size_t end = text.find(closing);
  const bool is_last = end == text.npos;
  std::string_view call = text.substr(0, is_last ? text.size() - beginning_of(closing, text) : end);
  text.remove_prefix(is_last ? text.size() : end + closing.size());
  if (by_.reads == call_text::fenced && take(call, address.before)) call = without_fence(call, address.behind);
  return read_addressed_call(call, address.behind, *offers_, is_cut && is_last);
}

/// The calls of a section, where there are any; what else is in it is text.
bool tool_call_reader::take_section(std::string_view text, bool is_cut) {
  struct part {
    std::string_view text;
    std::optional<tool_call> call = std::nullopt;
  };
  std::vector<part> parts;
  while (!is_blank(text)) {
    const std::string_view before = text;
    const std::size_t next = text.find(by_.inner.opening);
    if (next == first_not_blank(text)) {
      auto call = read_section_call(text, is_cut);
      parts.push_back({before.substr(0, before.size() - text.size()), std::move(call)});
    } else {
      parts.push_back({before.substr(0, next)});
      text.remove_prefix(parts.back().text.size());
    }
  }
  if (std::ranges::none_of(parts, [](const part& each) { return each.call.has_value(); })) return false;
  for (part& each : parts)
    if (each.call)
      add_call(*std::move(each.call));
    else
      take_text(each.text);
  return true;
}

/// The calls of a list; none where there is anything else. Some templates write earlier calls as JSON.
bool tool_call_reader::take_pythonic(std::string_view text, bool is_cut) {
  std::string_view rest = text;
  if (!take(rest, "[")) return false;
  if (rest.substr(first_not_blank(rest)).starts_with('{')) return take_sequence(text, is_cut);
  std::vector<tool_call> calls;
  do {
    const bool is_unnamed = is_cut && rest.find('(') == rest.npos;  // cut before its arguments
    if (!keep_call(calls, take_pythonic_call(rest, *offers_, is_cut), is_unnamed)) return false;
    if (is_unnamed) rest = {};
  } while (take(rest, ","));
  if ((!take(rest, "]") && !is_cut) || !is_blank(rest)) return false;
  return add_all(std::move(calls));
}

/// The calls between tags; none where there is anything else.
bool tool_call_reader::take_invocations(std::string_view text, bool is_cut) {
  std::vector<tool_call> calls;
  while (!is_blank(text)) {
    const bool is_unnamed = is_cut && text.find('>') == text.npos;
    if (!keep_call(calls, take_invocation(text, *offers_, is_cut), is_unnamed)) return false;
    if (is_unnamed) text = {};
  }
  return add_all(std::move(calls));
}

bool tool_call_reader::take_tagged(std::string_view text, bool is_cut) {
  switch (by_.reads) {
    case call_text::pythonic:
      return take_pythonic(text, is_cut);
    case call_text::sequence:
      return take_sequence(text, is_cut);
    case call_text::section:
    case call_text::fenced:
      return take_section(text, is_cut);
    case call_text::unquoted:
      return add_any(read_unquoted_call(text, by_.address->before, *offers_, is_cut));
    case call_text::addressed:
      return add_any(read_addressed_call(text, by_.address->behind, *offers_, is_cut));
    case call_text::invocations:
      return take_invocations(text, is_cut) || add_any(read_call(text, *offers_, is_cut));
    default:
      return add_any(read_call(text, *offers_, is_cut));
  }
}

void tool_call_reader::add_call(tool_call call) {
  call.behind = certain_.size();
  is_behind_call_ = true;
  behind_call_.clear();
  if (++found_ <= most_) calls_.push_back(std::move(call));
}

/// False where there is none.
bool tool_call_reader::add_any(std::optional<tool_call> call) {
  if (call) add_call(*std::move(call));
  return call.has_value();
}

/// False where there are none.
bool tool_call_reader::add_all(std::vector<tool_call> calls) {
  for (tool_call& each : calls) add_call(std::move(each));
  return !calls.empty();
}

std::vector<tool_call> tool_call_reader::take_calls() {
  return std::exchange(calls_, {});
}

}  // namespace troupe
