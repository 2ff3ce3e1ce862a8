#include "actors/http/answers/answer_call.hpp"
#include "actors/http/forwarding_exchange.hpp"
#include "actors/http/generate/generate.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/json_text.hpp"
#include "actors/http/routes.hpp"

namespace troupe {
namespace {

/// `stream`: none where the request says.
void answer(const api_call& call, std::optional<bool> stream, generated_shape shape) {
  const json body = parse_body(call.request->body);
  const request_fields from(body);
  const bool streams = stream ? *stream : from.boolean("stream").value_or(false);
  start_answer(call, read_generation(from, call.context->served, streams, shape));
}

/// What went wrong, in this API's words.
std::string_view kind_of(const request_fields& error) {
  const std::string type = error.text("type").value_or(""), code = error.text("code").value_or("");
  if (type == "rate_limit_error" || code == "service_unavailable") return "overloaded";
  return type == "server_error" ? "generation" : "validation";
}

class restating_exchange final : public forwarding_exchange {
 public:
  using forwarding_exchange::forwarding_exchange;

  void reply(http_response response) override {
    if (response.status >= 400) response.body = generation_error(response.body);
    forwarding_exchange::reply(std::move(response));
  }
};

}  // namespace

bool is_for_generation(const http_request& request) {
  return request.method == "POST" &&
         (request.path == "/" || request.path == "/generate" || request.path == "/generate_stream");
}

std::string generation_error(std::string_view error) {
  const json all = json::parse(error, nullptr, false);
  const json said = all.is_object() ? all.value("error", json::object()) : json::object();
  const request_fields fields(said);
  return fmt::format(R"({{"error":{},"error_type":"{}"}})", json_text(fields.text("message").value_or("")),
                     kind_of(fields));
}

std::shared_ptr<http_exchange> generation_exchange(std::shared_ptr<http_exchange> to) {
  return std::make_shared<restating_exchange>(std::move(to));
}

void add_generate_routes(api_routes& to) {
  using enum generated_shape;
  to.add_limited("POST", "/", [](const api_call& call) { answer(call, std::nullopt, list); });
  to.add_limited("POST", "/generate", [](const api_call& call) { answer(call, false, object); });
  to.add_limited("POST", "/generate_stream", [](const api_call& call) { answer(call, true, object); });
}

}  // namespace troupe
