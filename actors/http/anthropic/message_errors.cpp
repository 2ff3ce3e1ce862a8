#include "actors/http/anthropic/message_errors.hpp"

#include <fmt/format.h>

#include "actors/http/api_error.hpp"
#include "actors/http/forwarding_exchange.hpp"
#include "actors/http/json_text.hpp"
#include "actors/requests/request_fields_impl.hpp"

namespace troupe {
namespace {

constexpr const char* overloaded = "overloaded_error";
constexpr int overloaded_status = 529;

/// Most words are the same.
std::string type_of(const told_error& error) {
  if (error.code == "model_not_found" || error.code == "unknown_url") return "not_found_error";
  if (error.code == "service_unavailable") return overloaded;
  return error.type == "server_error" ? "api_error" : error.type;
}

/// A prompt that was too long is recognised by these words, upon which clients shorten it.
std::string message_of(const told_error& error) {
  return error.code == too_long_code ? "prompt is too long: " + error.message : error.message;
}

/// Anthropic's client asks for a conversation that the server keeps. Told so, it sends the whole of it instead.
std::string_view details_of(const told_error& error) {
  if (error.param != "thread") return {};
  return R"(,"details":{"error_code":"thread_unsupported_request","unsupported":["thread"]})";
}

class restated_messages final : public forwarding_exchange {
 public:
  using forwarding_exchange::forwarding_exchange;

  void reply(http_response response) override {
    if (response.status >= 400) restate(response);
    forwarding_exchange::reply(with_id(std::move(response)));
  }
  void begin_stream(http_response head) override { forwarding_exchange::begin_stream(with_id(std::move(head))); }

 private:
  void restate(http_response& response) const {
    if (type_of(read_error(response.body)) == overloaded) response.status = overloaded_status;
    response.body = message_error(response.body, id());
  }
  http_response with_id(http_response response) const {
    response.headers.emplace_back("request-id", id());
    return response;
  }
};

}  // namespace

bool is_for_messages(const http_request& request) {
  constexpr std::string_view path = "/v1/messages";
  return request.path == path || request.path.starts_with(std::string(path) + "/");
}

std::string message_error(std::string_view error, std::string_view request_id) {
  const told_error told = read_error(error);
  return fmt::format(R"({{"type":"error","error":{{"type":{},"message":{}{}}}{}}})", json_text(type_of(told)),
                     json_text(message_of(told)), details_of(told),
                     request_id.empty() ? "" : R"(,"request_id":)" + json_text(request_id));
}

std::shared_ptr<http_exchange> message_exchange(std::shared_ptr<http_exchange> to) {
  return std::make_shared<restated_messages>(std::move(to));
}

}  // namespace troupe
