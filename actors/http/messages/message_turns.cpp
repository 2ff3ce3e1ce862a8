// What was said so far: blocks of this API become messages of a chat.
#include "actors/http/messages/message_input_impl.hpp"

#include <utility>

namespace troupe {
namespace {

/// Claude Code's first block of `system`: for the accounts of its maker's servers, not for the model. It has another
/// number in each request, so that no two prompts would have a beginning in common.
constexpr std::string_view billing_line = "x-anthropic-billing-header:";

[[noreturn]] void refuse_block(const std::string& where, std::string_view problem) {
  refuse_field(where.substr(0, where.find('[')), fmt::format("{} {}", where, problem), "unsupported_value");
}

const json& member(const json& object, const std::string& where, const char* key) {
  if (!object.is_object()) refuse_block(where, "should be an object");
  const auto found = object.find(key);
  if (found == object.end()) refuse_block(where, fmt::format("has no {}", key));
  return *found;
}

const std::string& text_member(const json& object, const std::string& where, const char* key) {
  const json& value = member(object, where, key);
  if (!value.is_string()) refuse_block(where, fmt::format("should have a text as {}", key));
  return value.get_ref<const std::string&>();
}

[[noreturn]] void refuse_type(const std::string& where, const std::string& type, std::string_view served) {
  refuse_block(where, fmt::format("is of the type {}: {} served here", type.substr(0, 40), served));
}

json text_part(const json& block, const std::string& where) {
  return {{"type", "text"}, {"text", text_member(block, where, "text")}};
}

/// A text, or blocks of text. Nothing is an empty text.
json texts_of(const json& content, const std::string& where) {
  if (content.is_null()) return "";
  if (content.is_string()) return content;
  if (!content.is_array()) refuse_block(where, "should be a text or a list of blocks");
  json parts = json::array();
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", where, i);
    const std::string& type = text_member(content[i], at, "type");
    if (type != "text") refuse_type(at, type, "only text is");
    parts.push_back(text_part(content[i], at));
  }
  return parts;
}

/// Makes one message of an assistant.
class answer_writer {
 public:
  void add(const json& block, const std::string& where) {
    const std::string& type = text_member(block, where, "type");
    if (type == "text")
      parts_.push_back(text_part(block, where));
    else if (type == "tool_use")
      add_call(block, where);
    else if (type == "thinking")
      add_thought(text_member(block, where, "thinking"));
    else if (type != "redacted_thinking")  // what another server alone can read
      refuse_type(where, type, "text, tool_use and thinking are");
  }
  void finish(json& messages) {
    json message{{"role", "assistant"}, {"content", std::move(parts_)}};
    if (!thought_.empty()) message["reasoning_content"] = std::move(thought_);
    if (!calls_.empty()) message["tool_calls"] = std::move(calls_);
    messages.push_back(std::move(message));
  }

 private:
  void add_call(const json& block, const std::string& where) {
    const json& input = member(block, where, "input");
    if (!input.is_object()) refuse_block(where, "should have an object as input");
    calls_.push_back({{"id", text_member(block, where, "id")},
                      {"type", "function"},
                      {"function", {{"name", text_member(block, where, "name")}, {"arguments", input}}}});
  }
  void add_thought(const std::string& thought) {
    if (!thought_.empty()) thought_ += '\n';
    thought_ += thought;
  }

  json parts_ = json::array(), calls_ = json::array();
  std::string thought_;
};

/// Makes messages of one of a user: what tools returned are messages of their own.
class question_writer {
 public:
  void add(json& messages, const json& block, const std::string& where) {
    const std::string& type = text_member(block, where, "type");
    if (type == "text") return parts_.push_back(text_part(block, where));
    if (type != "tool_result") refuse_type(where, type, "text and tool_result are");
    finish(messages);
    json content = block.contains("content") ? texts_of(block["content"], where + ".content") : json("");
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", text_member(block, where, "tool_use_id")},
                        {"content", std::move(content)}});
  }
  void finish(json& messages) {
    if (!parts_.empty()) messages.push_back({{"role", "user"}, {"content", std::exchange(parts_, json::array())}});
  }

 private:
  json parts_ = json::array();
};

void add_answer(json& messages, const json& blocks, const std::string& where) {
  answer_writer writer;
  for (std::size_t i = 0; i < blocks.size(); ++i) writer.add(blocks[i], fmt::format("{}[{}]", where, i));
  writer.finish(messages);
}

void add_question(json& messages, const json& blocks, const std::string& where) {
  question_writer writer;
  for (std::size_t i = 0; i < blocks.size(); ++i) writer.add(messages, blocks[i], fmt::format("{}[{}]", where, i));
  writer.finish(messages);
}

void add_turn(json& messages, const json& turn, const std::string& where) {
  const std::string& role = text_member(turn, where, "role");
  const json& content = member(turn, where, "content");
  if (role != "user" && role != "assistant" && role != "system")
    refuse_block(where, "has a role other than user, assistant and system");
  const std::string place = where + ".content";
  if (role == "system" || !content.is_array() || content.empty())
    messages.push_back({{"role", role}, {"content", texts_of(content, place)}});
  else if (role == "assistant")
    add_answer(messages, content, place);
  else
    add_question(messages, content, place);
}

void add_system(json& messages, const json& system) {
  json said = texts_of(system, "system");
  if (said.is_array() && !said.empty() && said[0]["text"].get_ref<std::string&>().starts_with(billing_line))
    said.erase(0);
  const bool says_nothing = said.is_string() ? said.get_ref<std::string&>().empty() : said.empty();
  if (!says_nothing) messages.push_back({{"role", "system"}, {"content", std::move(said)}});
}

}  // namespace

json turns_of_message(const request_fields& from) {
  json messages = json::array();
  if (const json* system = from.find("system")) add_system(messages, *system);
  const json* turns = from.list("messages");
  if (!turns) request_fields::refuse_missing("messages");
  if (turns->empty()) refuse_field("messages", "messages is empty", "missing_required_parameter");
  for (std::size_t i = 0; i < turns->size(); ++i) add_turn(messages, (*turns)[i], fmt::format("messages[{}]", i));
  return messages;
}

}  // namespace troupe
