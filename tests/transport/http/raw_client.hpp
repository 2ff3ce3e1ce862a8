#pragma once
#include <netinet/tcp.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "base/to_size.hpp"
#include "tests/base/loopback.hpp"

namespace troupe::test {

/// A socket that sends exactly what a test says. It waits so long at most for an answer, or for room. It comes from
/// 127.0.0.`from`.
class raw_client {
 public:
  explicit raw_client(std::uint16_t port, int receive_bytes = 0,
                      std::chrono::seconds patience = std::chrono::seconds(10), std::uint32_t from = 1)
      : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_bytes > 0) {
      const int segment = 536;  // so that the server's socket holds little, too
      ::setsockopt(socket_.number(), IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof segment);
      ::setsockopt(socket_.number(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    const timeval longest{patience.count(), 0};
    for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO})
      ::setsockopt(socket_.number(), SOL_SOCKET, direction, &longest, sizeof longest);
    const sockaddr_in own = loopback(0, from), to = loopback(port);
    if (from != 1) ::bind(socket_.number(), reinterpret_cast<const sockaddr*>(&own), sizeof own);
    ::connect(socket_.number(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
  }

  bool say(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      text.remove_prefix(to_size(sent));
    }
    return true;
  }
  /// Reads until `end` has come, the other side closes, or its patience ends in silence.
  std::string hear_until(std::string_view end) {
    while (heard_.find(end) == std::string::npos && hear_more()) {
    }
    const std::size_t at = heard_.find(end);
    const std::size_t length = at == std::string::npos ? heard_.size() : at + end.size();
    std::string text = heard_.substr(0, length);
    heard_.erase(0, length);
    return text;
  }
  std::string hear_all() {
    while (hear_more()) {
    }
    return std::exchange(heard_, {});
  }
  /// Reads one response that has a content-length.
  std::string hear_response() {
    std::string text = hear_until("\r\n\r\n");
    const std::size_t at = text.find("content-length: ");
    const std::size_t length = at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
    while (heard_.size() < length && hear_more()) {
    }
    text += heard_.substr(0, length);
    heard_.erase(0, std::min(length, heard_.size()));
    return text;
  }
  /// Whether the other side has closed the connection, as far as was heard.
  bool was_closed() const { return was_closed_; }
  void close() { socket_.close(); }

 private:
  bool hear_more() {
    char some[4096];
    const ssize_t got = ::recv(socket_.number(), some, sizeof some, 0);
    if (got > 0) heard_.append(some, to_size(got));
    was_closed_ = got == 0;
    return got > 0;
  }

  file_descriptor socket_;
  std::string heard_;
  bool was_closed_ = false;
};

}  // namespace troupe::test
