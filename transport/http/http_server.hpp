// An HTTP/1.1 server: keep-alive, pipelining, chunked streams. Knows nothing of what is served.
//
// Goals
// - Whatever bytes come: an HTTP error or a clean close, with bounded memory, in bounded time.
// - A client that goes, or that does not read, costs nothing for long; whoever answers it is told.
// - Handlers run on the server's threads and must not wait.
// Non-goals: TLS (put a proxy before it), HTTP/2, compression.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transport/http/http_exchange.hpp"

namespace troupe {

struct http_options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free one
  int threads = 1;
  /// Or half of the files that the process may open, if that is less. Whoever comes beyond it takes the place of the
  /// one that has sent no whole request for the longest, those that were never trusted first.
  std::size_t max_connections = 4096;
  std::uint32_t header_bytes = 16 << 10;
  std::size_t body_bytes = 16 << 20;
  /// Of one stream, not yet written, before its client is dropped. A client that reads must never come near it: while
  /// the server's threads are busy with other requests, nothing is written, and log-probabilities are many bytes.
  std::size_t stream_backlog = 4 << 20;
  // One address gets half of each at most.
  std::size_t bodies_bytes = 512 << 20;   ///< of all requests that are being received
  std::size_t answers_bytes = 512 << 20;  ///< of all long answers and streams that nobody has read yet

  std::chrono::milliseconds idle{75'000};         ///< between two requests
  std::chrono::milliseconds header_time{10'000};  ///< from a request's first byte to its head
  /// From there to its end. A long body may take longer: for each `body_rate` bytes that come there is another second.
  std::chrono::milliseconds body_time{60'000};
  std::size_t body_rate = 32 << 10;
  std::chrono::milliseconds linger_time{2'000};  ///< for what is left of a refused one, and more as it comes
  std::chrono::milliseconds write_time{30'000};  ///< in which some of what was written must have gone
  std::chrono::milliseconds grace{3'000};        ///< for requests in progress when the server is stopped

  /// The body of a response that the server itself makes: 400, 408, 413, 415, 431, 500, 501, 503, 505.
  std::function<std::string(int status, std::string_view why)> error_body = {};
  /// Of every response, also of those that the server itself makes. Of a request that is refused there may be no more
  /// than its first line and some headers, or less.
  std::function<http_headers(const http_request& request)> more_headers = {};
  /// Around the exchange of a request that the server itself refuses before the handler gets it: for whoever writes
  /// down what becomes of all requests. Of this one, too, there may be no more.
  std::function<std::shared_ptr<http_exchange>(std::shared_ptr<http_exchange> exchange, const http_request& request)>
      around_refusal = {};
  /// Whether a body of more than 64 KB is read from whoever asks like this. If not, the handler gets the request at
  /// once, without its body, and the connection ends with the answer.
  std::function<bool(const http_request& head)> takes_long_body = {};
  /// Called when a connection beyond `max_connections` is closed, without a word to its client, because a request is in
  /// progress at all others.
  std::function<void()> on_surplus = {};
};

/// Throws input_error where the address is in use or none of this machine's.
void check_http_address(const http_options& options);

class http_server {
 public:
  /// Binds; throws input_error where the address is in use or none of this machine's.
  http_server(http_options options, http_handler handler);
  ~http_server();  ///< stops

  void start();
  /// Takes nobody new, lets requests in progress end for `grace`, then closes. Handlers are not called after that.
  void stop();

  std::uint16_t port() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
