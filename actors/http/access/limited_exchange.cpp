#include "actors/http/access/limited_exchange.hpp"

#include <fmt/format.h>

#include "actors/http/api_error.hpp"
#include "actors/http/forwarding_exchange.hpp"

namespace troupe {
namespace {

std::string reset_text(duration until) {
  return fmt::format("{}s", std::chrono::ceil<std::chrono::milliseconds>(until).count() / 1000.0);
}

void add_standing(http_headers& to, const key_limits::standing& standing) {
  const auto add = [&](const char* name, const key_limits::allowance& allowance) {
    if (allowance.per_minute == 0) return;
    to.emplace_back(fmt::format("x-ratelimit-limit-{}", name), fmt::format("{}", allowance.per_minute));
    to.emplace_back(fmt::format("x-ratelimit-remaining-{}", name), fmt::format("{}", allowance.left));
    to.emplace_back(fmt::format("x-ratelimit-reset-{}", name), reset_text(allowance.until_full));
  };
  add("requests", standing.requests);
  add("tokens", standing.tokens);
}

std::string limit_text(key_limits::limit reached, const rate_limits& limits) {
  switch (reached) {
    case key_limits::limit::concurrent:
      return fmt::format("{} requests of this key are in progress", limits.concurrent);
    case key_limits::limit::tokens:
      return fmt::format("this key has {} tokens a minute", limits.tokens_per_minute);
    default:
      return fmt::format("this key has {} requests a minute", limits.requests_per_minute);
  }
}

/// Adds the state of the key's limits to the answer. Ends the ticket before the client can have all of the answer and
/// ask again, and at the latest when the exchange is gone.
class limited_exchange final : public forwarding_exchange {
 public:
  limited_exchange(const api_call& call, key_limits::ticket ticket)
      : forwarding_exchange(call.exchange), context_(call.context), key_(call.key.name), ticket_(std::move(ticket)) {}

  void reply(http_response response) override {
    response = with_standing(std::move(response));
    ticket_.reset();
    forwarding_exchange::reply(std::move(response));
  }
  void begin_stream(http_response head) override { forwarding_exchange::begin_stream(with_standing(std::move(head))); }
  void end_stream() override {
    ticket_.reset();
    forwarding_exchange::end_stream();
  }

 private:
  http_response with_standing(http_response response) const {
    add_standing(response.headers, context_->limits.standing_of(key_));
    return response;
  }

  std::shared_ptr<api_context> context_;
  std::string key_;
  key_limits::ticket ticket_;
};

}  // namespace

std::shared_ptr<http_exchange> limit_exchange(const api_call& call) {
  const rate_limits& limits = call.key.limits;
  auto ticket = call.context->limits.begin(call.key.name, limits);
  if (ticket) return std::make_shared<limited_exchange>(call, *ticket);
  const key_limits::refused& refused = ticket.error();
  api_error error(429, limit_text(refused.reached, limits) + ": try again later", {}, "rate_limit_exceeded");
  http_response response = error_response(error.retry_after(refused.wait));
  add_standing(response.headers, refused.left);
  call.exchange->reply(std::move(response));
  return nullptr;
}

}  // namespace troupe
