// The API and the page: an HTTP server with its routes, which uses the gateway like all other callers.
#pragma once
#include <memory>

#include "actors/http/api_context.hpp"
#include "transport/http/http_server.hpp"

namespace troupe {

class http_front {
 public:
  /// Listens at once. Throws input_error if the address is in use or the keys cannot be read.
  http_front(const http_options& options, http_parts parts);
  ~http_front();

  /// Ends requests in progress; actors are told nothing after that.
  void stop();
  std::uint16_t port() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
