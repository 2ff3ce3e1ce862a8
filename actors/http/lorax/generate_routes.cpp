#include "actors/http/answers/answer_call.hpp"
#include "actors/http/json_body_impl.hpp"
#include "actors/http/lorax/generate.hpp"
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

}  // namespace

void add_generate_routes(api_routes& to) {
  using enum generated_shape;
  to.add_limited("POST", "/", [](const api_call& call) { answer(call, std::nullopt, list); });
  to.add_limited("POST", "/generate", [](const api_call& call) { answer(call, false, object); });
  to.add_limited("POST", "/generate_stream", [](const api_call& call) { answer(call, true, object); });
}

}  // namespace troupe
