// The API and the page: an HTTP server with its routes, which uses the gateway like all other callers.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "actors/http/api_context.hpp"
#include "transport/http/http_router.hpp"
#include "transport/http/http_server.hpp"

namespace troupe {

class http_front final : http_service {
 public:
  /// Listens at once. Throws input_error if the address is in use or the keys cannot be read.
  http_front(const http_options& options, http_parts parts);
  ~http_front() override;  ///< stops
  http_front(const http_front&) = delete;
  http_front& operator=(const http_front&) = delete;

  /// Ends requests in progress; actors are told nothing after that.
  void stop();
  std::uint16_t port() const { return server_.port(); }
  /// Whether other machines can use it without a key.
  bool is_open_to_others() const;

 private:
  void handle(http_request&& request, std::shared_ptr<http_exchange> exchange) override;
  std::string error_body(int status, std::string_view why) const override;
  http_headers more_headers(const http_request& request) const override;
  std::shared_ptr<http_exchange> around_refusal(std::shared_ptr<http_exchange> exchange,
                                                const http_request& request) override;
  bool takes_long_body(const http_request& head) override;
  void on_surplus() override;

  std::shared_ptr<api_context> context_;
  http_router router_;
  http_server server_;
};

}  // namespace troupe
