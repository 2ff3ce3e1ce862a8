// Passes bytes between clients and one port, until it is told to cut all connections.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "base/file_descriptor.hpp"
#include "base/host_port.hpp"
#include "base/to_size.hpp"
#include "tests/base/loopback.hpp"

namespace troupe {

class cutting_proxy {
 public:
  explicit cutting_proxy(const std::string& target) : target_(test::loopback(split_endpoint(target).value().port)) {
    sockaddr_in any = test::loopback(0);
    socklen_t size = sizeof any;
    ready_ = ::bind(listener_.number(), reinterpret_cast<sockaddr*>(&any), size) == 0 &&
             ::listen(listener_.number(), 16) == 0 &&
             ::getsockname(listener_.number(), reinterpret_cast<sockaddr*>(&any), &size) == 0;
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(any.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~cutting_proxy() {
    stop_ = true;
    thread_.join();
    cut_all();
  }
  cutting_proxy(const cutting_proxy&) = delete;
  cutting_proxy& operator=(const cutting_proxy&) = delete;

  bool ready() const { return ready_; }
  const std::string& endpoint() const { return endpoint_; }
  /// Cuts every connection once so many bytes have passed through it.
  void cut_after(std::size_t bytes) { cut_after_ = bytes; }
  int cuts() const { return cuts_; }

 private:
  struct connection {
    file_descriptor outer, inner;
    std::size_t passed = 0;
  };

  void run() {
    while (!stop_) {
      std::vector<pollfd> watched{{listener_.number(), POLLIN, 0}};
      for (const connection& each : connections_) {
        watched.push_back({each.outer.number(), POLLIN, 0});
        watched.push_back({each.inner.number(), POLLIN, 0});
      }
      if (::poll(watched.data(), watched.size(), 20) <= 0) continue;
      std::size_t at = 1;
      for (auto each = connections_.begin(); each != connections_.end(); at += 2) {
        const bool lives = (watched[at].revents == 0 || pass(*each, each->outer, each->inner)) &&
                           (watched[at + 1].revents == 0 || pass(*each, each->inner, each->outer));
        each = lives ? std::next(each) : cut(each);
      }
      if (watched[0].revents != 0) accept();
    }
  }

  void accept() {
    file_descriptor outer(::accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    file_descriptor inner(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const bool connected = ::connect(inner.number(), reinterpret_cast<const sockaddr*>(&target_), sizeof target_) == 0;
    connections_.push_back({std::move(outer), std::move(inner)});
    if (!connected) cut(std::prev(connections_.end()));
  }

  bool pass(connection& through, const file_descriptor& from, const file_descriptor& to) const {
    std::array<char, 4096> bytes{};
    const auto count = ::recv(from.number(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    for (ssize_t sent = 0; sent < count;) {
      const auto more = ::send(to.number(), bytes.data() + sent, to_size(count - sent), MSG_NOSIGNAL);
      if (more <= 0) return false;
      sent += more;
    }
    through.passed += to_size(count);
    return through.passed < cut_after_;
  }

  std::list<connection>::iterator cut(std::list<connection>::iterator broken) {
    // Closes at once, as a broken network would: what is in the buffers is lost.
    const linger none{1, 0};
    for (const file_descriptor* socket : {&broken->outer, &broken->inner})
      ::setsockopt(socket->number(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    ++cuts_;
    return connections_.erase(broken);
  }
  void cut_all() {
    while (!connections_.empty()) cut(connections_.begin());
  }

  const sockaddr_in target_;
  file_descriptor listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  bool ready_ = false;
  std::string endpoint_;
  std::list<connection> connections_;
  std::atomic<std::size_t> cut_after_{~std::size_t{0}};
  std::atomic<int> cuts_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace troupe
