#include "actors/http/answers/asked_body.hpp"

#include "actors/http/chats/chat_order.hpp"
#include "actors/http/chats/tool_choice.hpp"
#include "actors/http/json_body_impl.hpp"

namespace troupe {

void with_asked_body(const api_call& call, std::function<void(const request_fields& body)> read) {
  const auto body = std::make_shared<const json>(parse_body(call.request->body));
  if (!may_demand_calls(request_fields(*body))) return read(request_fields(*body));
  auto read_later = [body, read = std::move(read)] { read(request_fields(*body)); };
  guarded_later(*call.context->work, call.key.name, call.exchange, std::move(read_later), call.request->body.size());
}

void count_prompt(const api_call& call, chat_order (*read)(const request_fields& from, const served_model& served),
                  const char* object) {
  with_asked_body(call, [call, read, object](const request_fields& body) {
    const served_model& served = call.context->served;
    const chat_order asked = read(body, served);
    json answer = json::object();
    if (object) answer["object"] = object;
    const answer_order& order = asked.order;
    answer["input_tokens"] = served.prompts->encode(order.prompts.front(), order.sampling).size();
    reply_json(call.exchange, answer);
  });
}

}  // namespace troupe
