#pragma once
#include <memory>
#include <utility>

#include "transport/http/http_service.hpp"

namespace troupe::test {

/// A service that is no more than a function.
class handling final : public http_service {
 public:
  explicit handling(http_handler handler) : handler_(std::move(handler)) {}
  void handle(http_request&& request, std::shared_ptr<http_exchange> exchange) override {
    handler_(std::move(request), std::move(exchange));
  }

 private:
  http_handler handler_;
};

}  // namespace troupe::test
