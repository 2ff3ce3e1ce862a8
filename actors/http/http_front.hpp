// The API and the page, as one more user of the gateway: an HTTP server with its routes.
#pragma once
#include <memory>

#include "actors/http/api_context.hpp"
#include "transport/http/http_server.hpp"

namespace troupe {

class http_front {
 public:
  /// Listens at once. Throws input_error where the address is in use, or the keys cannot be read.
  http_front(const http_options& options, http_parts parts);
  ~http_front();

  /// Requests in progress end; nothing is told to the actors after that.
  void stop();
  std::uint16_t port() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
