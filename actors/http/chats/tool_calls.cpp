#include "actors/http/chats/tool_calls.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "actors/http/chats/tags.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view opening = "<tool_call>", closing = "</tool_call>";
constexpr std::size_t longest_call = 1 << 20;

/// An object, or one as a text, of which the end is missing.
bool is_begun(std::string_view value) {
  if (!value.starts_with('{') && !value.starts_with('"')) return false;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '"') quoted = !quoted;
    if (quoted && c == '\\') ++i;
    if (!quoted) depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (!quoted && depth <= 0) return false;
  }
  return true;
}

}  // namespace

tool_style tool_style_of(std::string_view chat_template) {
  const auto has = [&](std::string_view text) { return chat_template.find(text) != chat_template.npos; };
  if (!has("tools")) return tool_style::none;
  if (has(opening)) return tool_style::tagged;
  return has("\"parameters\"") || has("python_tag") ? tool_style::bare : tool_style::none;
}

tool_call_reader::tool_call_reader(tool_style style, std::vector<std::string> names, std::size_t most, bool is_call)
    : style_(names.empty() ? tool_style::none : style), names_(std::move(names)), is_call_(is_call), most_(most) {}

std::string tool_call_reader::push(std::string_view piece) {
  if (style_ == tool_style::none || is_text_) return std::string(piece);
  held_ += piece;
  if (style_ == tool_style::tagged)
    read_tagged();
  else
    read_bare();
  return std::exchange(certain_, {});
}

void tool_call_reader::read_tagged() {
  while (true) {
    if (!inside_) {
      const std::size_t at = held_.find(opening);
      std::size_t keep = at == held_.npos ? beginning_of(opening, held_) : held_.size() - at;
      take_text(std::string_view(held_).substr(0, held_.size() - keep));
      held_.erase(0, held_.size() - keep);
      if (at == held_.npos || !held_.starts_with(opening)) return;
      inside_ = true;
    }
    const std::size_t end = held_.find(closing);
    if (end == held_.npos && held_.size() < longest_call) return;
    inside_ = false;
    if (end == held_.npos || !read_call(std::string_view(held_).substr(opening.size(), end - opening.size()))) {
      is_text_ = true;
      certain_ += std::exchange(behind_call_, {}) + std::exchange(held_, {});
      return;
    }
    held_.erase(0, end + closing.size());
  }
}

/// Between two calls there is only white space, which is not part of the text.
void tool_call_reader::take_text(std::string_view text) {
  behind_call_ += text;
  if (is_behind_call_ && first_letter(behind_call_) == behind_call_.size()) return;
  is_behind_call_ = false;
  certain_ += std::exchange(behind_call_, {});
}

void tool_call_reader::read_bare() {
  const std::size_t at = first_letter(held_);
  if (at == held_.size() || (held_[at] == '{' && held_.size() < longest_call)) return;
  is_text_ = true;
  certain_ = std::exchange(held_, {});
}

std::string tool_call_reader::finish(bool is_cut) {
  if (style_ == tool_style::none || is_text_) return {};
  std::string rest = std::exchange(held_, {});
  if (style_ == tool_style::tagged && !inside_) return is_call_ ? std::string() : rest;
  std::string_view call = rest;
  if (inside_) {
    call.remove_prefix(opening.size());
    call.remove_suffix(beginning_of(closing, call));
  }
  return read_call(call) || (is_cut && read_cut_call(call)) || is_call_ ? std::string() : rest;
}

bool tool_call_reader::read_call(std::string_view text) {
  try {
    const json call = detail::parse_json_as<json>(text, "tool call", {.depth = 64});
    if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return false;
    const std::string called = call["name"];
    const auto arguments = call.contains("arguments") ? call.find("arguments") : call.find("parameters");
    if (!is_offered(called) || arguments == call.end() || !(arguments->is_object() || arguments->is_string()))
      return false;
    add_call({called, arguments->is_string() ? arguments->get<std::string>() : arguments->dump()});
    return true;
  } catch (const input_error&) {
    return false;
  }
}

/// Reads a call that was cut: {"name": …, "arguments": …}. Takes the arguments as far as they go; none if they have not
/// begun. False for a call that is whole, since read_call() would have read it.
bool tool_call_reader::read_cut_call(std::string_view text) {
  const auto take = [&](std::string_view wanted) {
    text.remove_prefix(first_letter(text));
    if (!text.starts_with(wanted)) return false;
    text.remove_prefix(wanted.size());
    return true;
  };
  if (!take("{") || !take(R"("name")") || !take(":") || !take("\"")) return false;
  const std::size_t end = text.find('"');
  if (end == text.npos) return false;
  tool_call call{.name = std::string(text.substr(0, end)), .arguments = {}, .is_cut = true};
  if (!is_offered(call.name)) return false;
  text.remove_prefix(end + 1);
  if (take(",") && (take(R"("arguments")") || take(R"("parameters")")) && take(":"))
    call.arguments = text.substr(first_letter(text));
  if (!call.arguments.empty() && !is_begun(call.arguments)) return false;
  add_call(std::move(call));
  return true;
}

bool tool_call_reader::is_offered(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

void tool_call_reader::add_call(tool_call call) {
  call.behind = certain_.size();
  is_behind_call_ = true;
  behind_call_.clear();
  if (++found_ <= most_) calls_.push_back(std::move(call));
}

std::vector<tool_call> tool_call_reader::take_calls() {
  return std::exchange(calls_, {});
}

}  // namespace troupe
