// A server for tests, and what clients say to it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/http/http_server.hpp"

namespace troupe::test {

/// Answers by path; keeps the exchanges of /later for the test; trusts who asks for /trusted.
class http_server_test : public testing::Test {
 protected:
  void start(http_options options = {}) {
    server_.emplace(std::move(options), [this](http_request&& request, std::shared_ptr<http_exchange> exchange) {
      if (request.path == "/later") return keep(std::move(exchange));
      if (request.path == "/throw") throw std::runtime_error("no");
      if (request.path == "/drop") return;
      if (request.path == "/trusted") exchange->mark_trusted();
      exchange->reply({.content_type = "text/plain", .body = request.method + " " + request.path + " " + request.body});
    });
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
