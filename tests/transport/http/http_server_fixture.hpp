// A server for tests, and what clients say to it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/http/http_server.hpp"

namespace troupe::test {

/// What a test has a service do otherwise than by default.
struct own_ways {
  std::function<std::string(std::string_view why)> error_body = {};
  std::function<http_headers(const http_request&)> more_headers = {};
  std::function<bool(const http_request&)> takes_long_body = {};
  std::function<void()> on_surplus = {};
};

/// Answers by path; keeps the exchanges of /later for the test; trusts who asks for /trusted.
class http_server_test : public testing::Test {
 protected:
  void start(http_options options = {}, own_ways ways = {}) {
    server_.reset();
    ways_ = std::move(ways);
    server_.emplace(std::move(options), service_);
    server_->start();
  }
  void keep(std::shared_ptr<http_exchange> exchange) {
    const std::lock_guard lock(mutex_);
    kept_.push_back(std::move(exchange));
    changed_.notify_all();
  }
  std::shared_ptr<http_exchange> next_kept() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return !kept_.empty(); }))
      throw std::runtime_error("no request came");
    auto first = kept_.front();
    kept_.erase(kept_.begin());
    return first;
  }
  void note_gone() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }
  bool is_gone_soon() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return gone_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<http_exchange>> kept_;
  bool gone_ = false;

 private:
  class by_path final : public http_service {
   public:
    explicit by_path(http_server_test& test) : test_(test) {}

    void handle(http_request&& request, std::shared_ptr<http_exchange> exchange) override {
      if (request.path == "/later") return test_.keep(std::move(exchange));
      if (request.path == "/throw") throw std::runtime_error("no");
      if (request.path == "/drop") return;
      if (request.path == "/trusted") exchange->mark_trusted();
      exchange->reply({.content_type = "text/plain", .body = request.method + " " + request.path + " " + request.body});
    }
    std::string error_body(int status, std::string_view why) const override {
      return ways().error_body ? ways().error_body(why) : http_service::error_body(status, why);
    }
    http_headers more_headers(const http_request& request) const override {
      return ways().more_headers ? ways().more_headers(request) : http_headers();
    }
    bool takes_long_body(const http_request& head) override {
      return !ways().takes_long_body || ways().takes_long_body(head);
    }
    void on_surplus() override {
      if (ways().on_surplus) ways().on_surplus();
    }

   private:
    const own_ways& ways() const { return test_.ways_; }

    http_server_test& test_;
  };

  own_ways ways_;

 protected:
  by_path service_{*this};
  std::optional<http_server> server_;
};

inline std::string get(const std::string& path, const std::string& more = {}) {
  return "GET " + path + " HTTP/1.1\r\nhost: x\r\n" + more + "\r\n";
}
inline std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nhost: x\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
inline int status_of(const std::string& response) {
  return response.size() > 12 ? std::atoi(response.c_str() + 9) : 0;
}

}  // namespace troupe::test
