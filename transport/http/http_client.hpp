// Many requests at a time from one thread: what a load generator needs, and tests.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transport/http/http_message.hpp"

namespace troupe {

struct http_url {
  std::string host;
  std::uint16_t port = 80;
  std::string path;  ///< without a slash at the end
};
/// "http://host:port/path". Throws input_error.
http_url parse_http_url(std::string_view text);

/// Keeps connections open and uses them again. Everything runs inside run(), on its thread.
class http_client {
 public:
  /// Resolves. Throws input_error.
  explicit http_client(http_url to);
  ~http_client();

  struct listener {
    std::function<void(int status, const http_headers& headers)> on_head = {};
    std::function<void(std::string_view piece)> on_data = {};
    std::function<void(const std::string& error)> on_end = {};  ///< once; empty: all has come
  };
  /// `path` follows the URL's own.
  void send(const std::string& method, const std::string& path, const http_headers& headers, const std::string& body,
            listener heard);
  void after(double seconds, std::function<void()> then);
  /// Until nothing is under way.
  void run();
  void stop();

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace troupe
