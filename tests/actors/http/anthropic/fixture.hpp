#pragma once
#include <string>
#include <vector>

#include "tests/actors/http/fixture.hpp"

namespace troupe::test {

constexpr const char* letters_template =  // shows a line break, for which there is no token, as a stroke
    "{% for t in tools or [] %}[{{ t.function.name }}]{% endfor %}"
    "{% for m in messages %}{{ m.role[0] }}:"
    "{% if m.reasoning_content %}({{ m.reasoning_content | replace('\\n', '/') }}){% endif %}"
    "{{ m.content | replace('\\n', '/') }}"
    "{% for c in m.tool_calls or [] %}<{{ c.function.name }}{{ c.function.arguments.x }}>{% endfor %}"
    ";{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}{# <tool_call> </think> #}";

/// A front whose model has this template.
class messages_api : public api_test {
 protected:
  messages_api() { start(letters_template); }

  static json said(const std::string& role, const json& content) { return {{"role", role}, {"content", content}}; }
  static json text(const std::string& text) { return {{"type", "text"}, {"text", text}}; }
  static json tool(const std::string& name) {
    return {{"name", name}, {"description", "d"}, {"input_schema", {{"type", "object"}}}};
  }
  /// A request that asks "Hi", with further fields.
  static json asking(const json& more = json::object()) {
    json body{{"model", "letters"}, {"max_tokens", 9}, {"messages", json::array({said("user", "Hi")})}};
    body.update(more);
    return body;
  }
  /// What the model is given for a request, and how it is to answer.
  begin_request begun_for(const json& body) {
    auto answer = post("/v1/messages", body);
    auto begun = gateway_.take<begin_request>();
    give(begun, "x", "stop");
    EXPECT_EQ(answer.get().status, 200);
    return begun;
  }
  std::vector<token_id> prompt_of(const json& body) { return begun_for(body).engine.sequence.prompt; }
  /// The message that comes of what the model writes.
  json message_of(const json& body, const std::string& written, const std::string& finish = "stop") {
    auto answer = post("/v1/messages", body);
    give(gateway_.take<begin_request>(), written, finish);
    return answer.get().parsed();
  }
};

}  // namespace troupe::test
