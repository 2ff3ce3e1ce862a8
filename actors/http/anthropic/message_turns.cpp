// What was said so far: blocks of this API become messages of a chat.
#include "actors/http/anthropic/message_input_impl.hpp"

#include <utility>

#include "actors/http/placed_json_impl.hpp"

namespace troupe {
namespace {

/// Claude Code's first block of `system`: for the accounts of its maker's servers, not for the model. It has another
/// number in each request, so that no two prompts would have a beginning in common.
constexpr std::string_view billing_line = "x-anthropic-billing-header:";

json texts_of(const placed_json& content) {
  return texts_of(content, {"text"});
}

json text_part(const placed_json& block) {
  return {{"type", "text"}, {"text", block.text("text")}};
}

/// What a call returned comes next, and nothing else that the assistant says.
bool may_go_on(const json& message) {
  return (message["role"] == "user" || message["role"] == "assistant") && !message.contains("tool_calls");
}

json parts_of(json content) {
  if (content.is_array()) return content;
  return content == "" ? json::array() : json::array({{{"type", "text"}, {"text", std::move(content)}}});
}

void add_line(std::string& to, const std::string& line) {
  if (!to.empty()) to += '\n';
  to += line;
}

/// What one role says in several turns is one message, as at Anthropic: many templates refuse two.
void add_message(json& messages, json message) {
  const bool goes_on = !messages.empty() && messages.back()["role"] == message["role"] && may_go_on(messages.back());
  if (!goes_on) return messages.push_back(std::move(message));
  json &last = messages.back(), &said = last["content"];
  said = parts_of(std::move(said));
  for (const json& part : parts_of(std::move(message["content"]))) said.push_back(part);
  if (const auto thought = message.find("reasoning_content"); thought != message.end()) {
    json& thoughts = last.emplace("reasoning_content", "").first.value();
    add_line(thoughts.get_ref<std::string&>(), thought->get_ref<const std::string&>());
  }
  if (const auto calls = message.find("tool_calls"); calls != message.end()) last["tool_calls"] = std::move(*calls);
}

/// Makes one message of an assistant.
class answer_writer {
 public:
  void add(const placed_json& block) {
    const std::string& type = block.text("type");
    if (type == "text")
      parts_.push_back(text_part(block));
    else if (type == "tool_use")
      add_call(block);
    else if (type == "thinking")
      add_line(thought_, block.text("thinking"));
    else if (type != "redacted_thinking")  // what another server alone can read
      block.refuse_type(type, "text, tool_use and thinking are");
  }
  void finish(json& messages) {
    json message{{"role", "assistant"}, {"content", std::move(parts_)}};
    if (!thought_.empty()) message["reasoning_content"] = std::move(thought_);
    if (!calls_.empty()) message["tool_calls"] = std::move(calls_);
    add_message(messages, std::move(message));
  }

 private:
  void add_call(const placed_json& block) {
    const placed_json input = block.member("input");
    if (!input->is_object()) block.refuse("should have an object as input");
    calls_.push_back({{"id", block.text("id")},
                      {"type", "function"},
                      {"function", {{"name", block.text("name")}, {"arguments", *input}}}});
  }

  json parts_ = json::array(), calls_ = json::array();
  std::string thought_;
};

/// Makes messages of one of a user: what tools returned are messages of their own.
class question_writer {
 public:
  void add(json& messages, const placed_json& block) {
    const std::string& type = block.text("type");
    if (type == "text") return parts_.push_back(text_part(block));
    if (type != "tool_result") block.refuse_type(type, "text and tool_result are");
    finish(messages);
    json content = block->contains("content") ? texts_of(block.member("content")) : json("");
    messages.push_back(
        {{"role", "tool"}, {"tool_call_id", block.text("tool_use_id")}, {"content", std::move(content)}});
  }
  void finish(json& messages) {
    if (!parts_.empty()) add_message(messages, {{"role", "user"}, {"content", std::exchange(parts_, json::array())}});
  }

 private:
  json parts_ = json::array();
};

void add_answer(json& messages, const placed_json& blocks) {
  answer_writer writer;
  for (std::size_t i = 0; i < blocks->size(); ++i) writer.add(blocks[i]);
  writer.finish(messages);
}

void add_question(json& messages, const placed_json& blocks) {
  question_writer writer;
  for (std::size_t i = 0; i < blocks->size(); ++i) writer.add(messages, blocks[i]);
  writer.finish(messages);
}

void add_turn(json& messages, const placed_json& turn) {
  const std::string& role = turn.text("role");
  const placed_json content = turn.member("content");
  if (role != "user" && role != "assistant" && role != "system")
    turn.refuse("has a role other than user, assistant and system");
  if (role == "system" || !content->is_array() || content->empty())
    add_message(messages, {{"role", role}, {"content", texts_of(content)}});
  else if (role == "assistant")
    add_answer(messages, content);
  else
    add_question(messages, content);
}

void add_system(json& messages, const json& system) {
  json said = texts_of(placed_json(system, "system"));
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
  for (std::size_t i = 0; i < turns->size(); ++i) add_turn(messages, placed_json(*turns, "messages")[i]);
  return messages;
}

}  // namespace troupe
