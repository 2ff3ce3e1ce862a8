// Passes bytes between clients and one port, until it is told to cut all connections.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace troupe {

class cutting_proxy {
 public:
  explicit cutting_proxy(const std::string& target)
      : target_(address_of(static_cast<std::uint16_t>(std::stoi(target.substr(target.rfind(':') + 1))))) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in any = address_of(0);
    socklen_t size = sizeof any;
    ready_ = ::bind(listener_, reinterpret_cast<sockaddr*>(&any), size) == 0 && ::listen(listener_, 16) == 0 &&
             ::getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &size) == 0;
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(any.sin_port));
    thread_ = std::thread([this] { run(); });
  }
  ~cutting_proxy() {
    stop_ = true;
    thread_.join();
    cut_all();
    ::close(listener_);
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
    int outer, inner;
    std::size_t passed = 0;
  };

  static sockaddr_in address_of(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void run() {
    while (!stop_) {
      std::vector<pollfd> watched{{listener_, POLLIN, 0}};
      for (const auto& one : connections_) {
        watched.push_back({one.outer, POLLIN, 0});
        watched.push_back({one.inner, POLLIN, 0});
      }
      if (::poll(watched.data(), watched.size(), 20) <= 0) continue;
      std::size_t at = 1;
      for (auto one = connections_.begin(); one != connections_.end(); at += 2) {
        const bool lives = (watched[at].revents == 0 || pass(*one, one->outer, one->inner)) &&
                           (watched[at + 1].revents == 0 || pass(*one, one->inner, one->outer));
        one = lives ? std::next(one) : cut(one);
      }
      if (watched[0].revents != 0) accept();
    }
  }

  void accept() {
    const int outer = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int inner = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected = ::connect(inner, reinterpret_cast<const sockaddr*>(&target_), sizeof target_) == 0;
    connections_.push_back({outer, inner});
    if (!connected) cut(std::prev(connections_.end()));
  }

  bool pass(connection& one, int from, int to) const {
    std::array<char, 4096> bytes{};
    const auto count = ::recv(from, bytes.data(), bytes.size(), 0);
    if (count <= 0) return false;
    for (ssize_t sent = 0; sent < count;) {
      const auto more = ::send(to, bytes.data() + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
      if (more <= 0) return false;
      sent += more;
    }
    one.passed += static_cast<std::size_t>(count);
    return one.passed < cut_after_;
  }

  std::list<connection>::iterator cut(std::list<connection>::iterator one) {
    // Closes at once, as a broken network would: what is in the buffers is lost.
    const linger none{1, 0};
    for (const int socket : {one->outer, one->inner}) {
      ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      ::close(socket);
    }
    ++cuts_;
    return connections_.erase(one);
  }
  void cut_all() {
    while (!connections_.empty()) cut(connections_.begin());
  }

  const sockaddr_in target_;
  int listener_ = -1;
  bool ready_ = false;
  std::string endpoint_;
  std::list<connection> connections_;
  std::atomic<std::size_t> cut_after_{~std::size_t{0}};
  std::atomic<int> cuts_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace troupe
