// An HTTP/1.1 server: keep-alive, pipelining, chunked streams. Knows nothing of what is served.
//
// Goals
// - Whatever bytes come: an HTTP error or a clean close, with bounded memory, in bounded time.
// - A client that goes, or that does not read, costs nothing for long; whoever answers it is told.
// - The service runs on the server's threads and must not wait.
// Non-goals: TLS (put a proxy before it), HTTP/2, compression.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/http/http_service.hpp"

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
};

/// Throws input_error where the address is in use or none of this machine's.
void check_http_address(const http_options& options);

class http_server {
 public:
  /// Binds; throws input_error where the address is in use or none of this machine's. `service` outlives the server.
  http_server(http_options options, http_service& service);
  ~http_server();  ///< stops

  void start();
  /// Takes nobody new, lets requests in progress end for `grace`, then closes. The service is not called after that.
  void stop();

  std::uint16_t port() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
