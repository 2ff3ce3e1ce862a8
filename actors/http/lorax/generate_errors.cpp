#include "actors/http/lorax/generate_errors.hpp"

#include <fmt/format.h>

#include "actors/http/api_error.hpp"
#include "actors/http/forwarding_exchange.hpp"
#include "actors/http/json_text.hpp"

namespace troupe {
namespace {

/// What went wrong, in this API's words.
std::string_view kind_of(const told_error& error) {
  if (error.type == "rate_limit_error" || error.code == "service_unavailable") return "overloaded";
  return error.type == "server_error" ? "generation" : "validation";
}

class restated_generation final : public forwarding_exchange {
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
  const told_error told = read_error(error);
  return fmt::format(R"({{"error":{},"error_type":"{}"}})", json_text(told.message), kind_of(told));
}

std::shared_ptr<http_exchange> generation_exchange(std::shared_ptr<http_exchange> to) {
  return std::make_shared<restated_generation>(std::move(to));
}

}  // namespace troupe
