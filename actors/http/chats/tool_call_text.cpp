#include "actors/http/chats/tool_call_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/http/chats/pythonic_json.hpp"
#include "actors/http/chats/unquoted_json.hpp"
#include "base/ascii.hpp"
#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/text/channels.hpp"
#include "model/text/tags.hpp"

namespace troupe {
namespace {

using json = nlohmann::ordered_json;

const tool_offer* find_offer(std::span<const tool_offer> offers, std::string_view name) {
  const auto found = std::find_if(offers.begin(), offers.end(), [&](const auto& each) { return each.name == name; });
  return found == offers.end() ? nullptr : &*found;
}

std::optional<json> parsed(std::string_view text) {
  try {
    return detail::parse_json_as<json>(text, "tool call", {.depth = 64, .repeated_keys = true});
  } catch (const input_error&) {
    return std::nullopt;
  }
}

/// An object, or one as a text, of which the end is missing.
bool is_begun(std::string_view value) {
  return (value.starts_with('{') || value.starts_with('"')) && end_of_value(value) == value.npos;
}

/// Without the lines' ends that stand around a value.
std::string_view within_lines(std::string_view value) {
  if (value.starts_with('\n')) value.remove_prefix(1);
  if (value.ends_with('\n')) value.remove_suffix(1);
  return value;
}

/// The template shows earlier values as Python writes them.
std::string_view of_python(std::string_view value) {
  if (value == "True") return "true";
  if (value == "False") return "false";
  return value == "None" ? "null" : value;
}

/// JSON as it was written, but without white space around its parts: parsed and written again, long numbers would be
/// others.
std::string as_written(std::string_view value) {
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '"') quoted = !quoted;
    if (!quoted && is_blank(value.substr(i, 1))) continue;
    text += value[i];
    if (quoted && value[i] == '\\') text += value[++i];
  }
  return text;
}

/// Takes the member of an object of JSON that `text` begins with: its name as it is written, and its value.
std::pair<std::string_view, std::string_view> take_member(std::string_view& text) {
  const auto take_value = [&] {
    text.remove_prefix(first_not_blank(text));
    const bool has_end = text.starts_with('"') || text.starts_with('{') || text.starts_with('[');
    const std::size_t end = has_end ? end_of_value(text) : text.find_first_of(",} \t\r\n");
    const std::string_view value = text.substr(0, end);
    text.remove_prefix(value.size());
    return value;
  };
  const std::string_view name = take_value();
  take(text, ":");
  return {name, take_value()};
}

/// What an object of JSON says last of `key`, as it is written there; empty where it says nothing.
std::string_view member_of(std::string_view object, std::string_view key) {
  std::string_view said;
  take(object, "{");
  do {
    const auto [name, value] = take_member(object);
    if (name.size() == key.size() + 2 && name.substr(1).starts_with(key)) said = value;
  } while (take(object, ","));
  return said;
}

/// Past `"key":`, if that is next.
bool take_key(std::string_view& text, std::string_view key) {
  std::string_view rest = text;
  if (!take(rest, fmt::format(R"("{}")", key)) || !take(rest, ":")) return false;
  text = rest;
  return true;
}

/// Arguments that are told one by one. One that is told again counts as it is told last.
class told_arguments {
 public:
  /// The tags do not tell numbers from texts: what is JSON is meant so, unless the argument is a text.
  void add(const tool_offer& offer, std::string_view key, std::string_view value) {
    const bool is_text = std::find(offer.texts.begin(), offer.texts.end(), key) != offer.texts.end();
    const std::string_view meant = of_python(value);
    set(std::string(key), !is_text && parsed(meant) ? as_written(meant) : json(value).dump());
  }
  /// As JSON of which the end is missing.
  std::string without_end() const {
    std::string text = "{";
    for (const auto& [key, value] : values_)
      text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", json(key).dump(), value);
    return text;
  }
  std::string object() const { return without_end() + "}"; }

 private:
  void set(std::string key, std::string value) {
    const auto known =
        std::find_if(values_.begin(), values_.end(), [&](const auto& each) { return each.first == key; });
    if (known == values_.end())
      values_.emplace_back(std::move(key), std::move(value));
    else
      known->second = std::move(value);
  }

  std::vector<std::pair<std::string, std::string>> values_;  ///< as JSON
};

/// What stands around the keys and values of arguments.
struct argument_tags {
  std::string_view before_key, behind_key;
  std::string_view before_value = {};  ///< empty: the value follows at once, and may stand on lines of its own
  std::string_view behind_value;
};

/// Takes all arguments that come next. False where the last one is cut.
bool take_arguments(std::string_view& text, const argument_tags& tags, const tool_offer& offer,
                    told_arguments& arguments) {
  const bool follows_at_once = tags.before_value.empty();
  while (take(text, tags.before_key)) {
    const auto key = take_until(text, tags.behind_key);
    const bool has_value = key && (follows_at_once || take(text, tags.before_value));
    const auto value = has_value ? take_until(text, tags.behind_value) : std::nullopt;
    if (!value) return false;
    arguments.add(offer, *key, follows_at_once ? within_lines(*value) : *value);
  }
  return true;
}

}  // namespace

std::optional<tool_call> read_json_call(std::string_view text, std::span<const tool_offer> offers,
                                        std::string_view name_key) {
  const auto call = parsed(text);
  if (!call || !call->is_object() || !call->contains(name_key)) return std::nullopt;
  const auto arguments = call->contains("arguments") ? call->find("arguments") : call->find("parameters");
  const json& named = *call->find(name_key);
  if (!named.is_string()) return std::nullopt;
  std::string name = named;
  if (!find_offer(offers, name) || arguments == call->end() || !(arguments->is_object() || arguments->is_string()))
    return std::nullopt;
  if (arguments->is_string()) return tool_call{std::move(name), arguments->get<std::string>()};
  const std::string_view written = member_of(text, arguments.key());  // none where its name has escapes
  return tool_call{std::move(name), written.empty() ? arguments->dump() : as_written(written)};
}

std::optional<tool_call> read_cut_json_call(std::string_view text, std::span<const tool_offer> offers,
                                            std::string_view name_key) {
  if (!take(text, "{")) return std::nullopt;
  if (name_key != "name" && take_key(text, "tool_call_id") && !take_until(text, ",")) return std::nullopt;
  if (!take_key(text, name_key) || !take(text, "\"")) return std::nullopt;
  const auto name = take_until(text, "\"");
  if (!name || !find_offer(offers, *name)) return std::nullopt;
  tool_call call{.name = std::string(*name), .arguments = {}, .is_cut = true};
  if (take(text, ",") && (take(text, R"("arguments")") || take(text, R"("parameters")")) && take(text, ":"))
    call.arguments = text.substr(first_not_blank(text));
  if (!call.arguments.empty() && !is_begun(call.arguments)) return std::nullopt;
  return call;
}

std::optional<tool_call> read_addressed_call(std::string_view text, std::string_view body,
                                             std::span<const tool_offer> offers, bool is_cut) {
  auto name = take_until(text, body);
  if (name) name = name->substr(0, name->find("[CALL_ID]"));  // which Mistral's v11 may write; the id is ours to give
  if (!name || !find_offer(offers, *name)) return std::nullopt;
  if (is_blank(text) && !is_cut) return tool_call{std::string(*name), "{}"};
  const auto arguments = parsed(text);
  if (arguments && arguments->is_object()) return tool_call{std::string(*name), as_written(text)};
  if (!is_cut || (!is_blank(text) && !is_begun(text.substr(first_not_blank(text))))) return std::nullopt;
  return tool_call{.name = std::string(*name), .arguments = std::string(text), .is_cut = true};
}

std::optional<tool_call> read_unquoted_call(std::string_view text, std::string_view address,
                                            std::span<const tool_offer> offers, bool is_cut) {
  if (!take(text, address)) return std::nullopt;
  const std::string_view name = text.substr(0, text.find_first_of(" \t\r\n{"));
  text.remove_prefix(name.size());
  if (!find_offer(offers, name) || !text.substr(first_not_blank(text)).starts_with('{')) return std::nullopt;
  unquoted_reader arguments(text);
  const bool is_whole = arguments.read();
  if (!arguments.is_at_end() || (!is_whole && !is_cut)) return std::nullopt;
  if (is_whole && !parsed(arguments.as_json())) return std::nullopt;
  return tool_call{.name = std::string(name), .arguments = arguments.as_json(), .is_cut = !is_whole};
}

std::optional<tool_call> take_pythonic_call(std::string_view& text, std::span<const tool_offer> offers, bool is_cut) {
  text.remove_prefix(first_not_blank(text));
  const std::string_view name = text.substr(0, text.find_first_of("( \t\r\n"));
  if (!find_offer(offers, name) || !text.substr(name.size()).starts_with('(')) return std::nullopt;
  pythonic_reader arguments(text.substr(name.size()));
  const bool is_whole = arguments.read_arguments();
  const bool is_one = is_whole ? parsed(arguments.as_json()).has_value() : is_cut && is_blank(arguments.rest());
  if (!is_one) return std::nullopt;
  text = arguments.rest();
  return tool_call{.name = std::string(name), .arguments = arguments.as_json(), .is_cut = !is_whole};
}

std::optional<tool_call> take_invocation(std::string_view& text, std::span<const tool_offer> offers, bool is_cut) {
  constexpr argument_tags tags{.before_key = "<parameter name=\"", .behind_key = "\">", .behind_value = "</parameter>"};
  std::string_view rest = text;
  if (!take(rest, "<invoke name=\"")) return std::nullopt;
  const auto name = take_until(rest, tags.behind_key);
  const tool_offer* offer = name ? find_offer(offers, *name) : nullptr;
  if (!offer) return std::nullopt;
  told_arguments arguments;
  const bool is_whole = take_arguments(rest, tags, *offer, arguments);
  if (is_whole && take(rest, "</invoke>")) {
    text = rest;
    return tool_call{offer->name, arguments.object()};
  }
  if (!is_cut) return std::nullopt;
  text = {};
  return tool_call{.name = offer->name, .arguments = arguments.without_end(), .is_cut = true};
}

std::optional<tool_call> read_function_tags(std::string_view text, std::span<const tool_offer> offers, bool is_cut) {
  constexpr argument_tags tags{.before_key = "<parameter=", .behind_key = ">", .behind_value = "</parameter>"};
  if (!take(text, "<function=")) return std::nullopt;
  const auto name = take_until(text, ">");
  const tool_offer* offer = name ? find_offer(offers, *name) : nullptr;
  if (!offer) return std::nullopt;
  told_arguments arguments;
  const bool is_whole = take_arguments(text, tags, *offer, arguments);
  if (is_whole && take(text, "</function>") && is_blank(text)) return tool_call{offer->name, arguments.object()};
  if (!is_cut) return std::nullopt;
  return tool_call{.name = offer->name, .arguments = arguments.without_end(), .is_cut = true};
}

std::optional<tool_call> read_key_tags(std::string_view text, std::span<const tool_offer> offers, bool is_cut) {
  constexpr argument_tags tags{"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"};
  std::string_view name = text.substr(first_not_blank(text));
  name = name.substr(0, name.find_first_of(" \t\r\n<"));
  const tool_offer* offer = find_offer(offers, name);
  if (!offer) return std::nullopt;
  take(text, name);
  if (is_cut && text.empty()) return std::nullopt;  // it may have been going on
  told_arguments arguments;
  const bool is_whole = take_arguments(text, tags, *offer, arguments);
  if (is_whole && is_blank(text) && !is_cut) return tool_call{offer->name, arguments.object()};
  if (!is_cut || (is_whole && !tags.before_key.starts_with(text.substr(first_not_blank(text))))) return std::nullopt;
  return tool_call{.name = offer->name, .arguments = arguments.without_end(), .is_cut = true};
}

}  // namespace troupe
