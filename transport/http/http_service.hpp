#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "transport/http/http_exchange.hpp"

namespace troupe {

/// What an HTTP server serves. Called on the server's threads, by several at a time, and must not wait.
class http_service {
 public:
  virtual ~http_service() = default;

  virtual void handle(http_request&& request, std::shared_ptr<http_exchange> exchange) = 0;

  /// The body of a response that the server itself makes: 400, 408, 413, 415, 431, 500, 501, 503, 505.
  virtual std::string error_body(int status, std::string_view why) const;
  /// Of every response, also of those that the server itself makes. Of a request that is refused there may be no more
  /// than its first line and some headers, or less.
  virtual http_headers more_headers(const http_request&) const { return {}; }
  /// Around the exchange of a request that the server itself refuses before it is handled: for whoever writes down what
  /// becomes of all requests. Of this one, too, there may be no more.
  virtual std::shared_ptr<http_exchange> around_refusal(std::shared_ptr<http_exchange> exchange, const http_request&) {
    return exchange;
  }
  /// Whether a body of more than 64 KB is read from whoever asks like this. If not, the request is handled at once,
  /// without its body, and the connection ends with the answer.
  virtual bool takes_long_body(const http_request&) { return true; }
  /// A connection beyond `max_connections` is closed, without a word to its client, because a request is in progress at
  /// all others.
  virtual void on_surplus() {}
};

}  // namespace troupe
