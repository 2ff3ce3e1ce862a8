#include "transport/collective/gloo_ranks.hpp"

#include <fmt/format.h>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <thread>

#include "base/number_in.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::chrono::milliseconds longest_heartbeat(600);

/// What a rank sends before it must have heard from the others is less than a socket holds. Otherwise all ranks could
/// wait for ever, each with data that the other does not read.
constexpr std::size_t piece_bytes = 16 << 10, pieces_ahead = 2;

/// What a socket holds: more than the 64 KiB (its largest segment) that Linux may leave unconfirmed for 40 ms. With
/// less, a rank that sends for long without being answered waits for such a confirmation with every few pieces.
constexpr std::size_t socket_bytes = 128 << 10;

/// Precedes the bytes of every piece.
struct piece_header {
  std::uint32_t call = 0, bytes = 0;
};
static_assert(sizeof(piece_header) + piece_bytes <= socket_bytes);

/// Marks a piece that only says that its sender is alive.
constexpr std::uint32_t sign_of_life = std::numeric_limits<std::uint32_t>::max();

/// Gloo asks for a store of addresses; here the ranks tell them to each other instead.
class exchanged_addresses final : public gloo::rendezvous::Store {
 public:
  exchanged_addresses(const rank_group& group, meeting_place& place) : group_(group), place_(place) {}

  void set(const std::string&, const std::vector<char>& own) override {
    addresses_ = place_.exchange_words(group_, std::string(own.begin(), own.end()));
    asked_.reset();
  }
  /// Gloo's names for ranks end in their numbers.
  std::vector<char> get(const std::string& name) override {
    const auto rank = number_in<std::size_t>(std::string_view(name).substr(name.find_last_not_of("0123456789") + 1));
    if (!rank || *rank >= addresses_.size()) throw collective_failure(fmt::format("'{}' has no address", name));
    asked_ = static_cast<int>(*rank);
    return {addresses_[*rank].begin(), addresses_[*rank].end()};
  }
  void wait(const std::vector<std::string>&) override {}
  /// The rank whose address was asked for last, before Gloo connects to it.
  std::optional<int> asked() const { return asked_; }

 private:
  const rank_group& group_;
  meeting_place& place_;
  std::vector<std::string> addresses_;  ///< by rank
  std::optional<int> asked_;
};

/// A connection to one other rank. The calling thread itself reads and writes the socket: that takes a tenth of the
/// time that Gloo's own thread needs to pass data on.
class peer_connection {
 public:
  explicit peer_connection(gloo::transport::Pair& pair)
      : sender_(pair.createSendBuffer(0, out_.data(), out_.size())),
        receiver_(pair.createRecvBuffer(0, in_.data(), in_.size())) {
    pair.setSync(true, false);
  }

  /// The longest message there is: Gloo makes a socket hold what it is given, and then no more.
  void greet(std::uint32_t call) {
    const std::lock_guard lock(mutex_);
    send_locked(call, {}, out_.size());
  }
  void send(std::uint32_t call, std::span<const std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    send_locked(call, bytes);
  }
  /// Not while the connection is in use: then the other end either gets data soon, or is waiting for another rank.
  void send_sign_of_life() {
    if (const std::unique_lock lock(mutex_, std::try_to_lock); lock) send_locked(sign_of_life, {});
  }
  /// False: the other side is at another call.
  bool receive(std::uint32_t call, std::span<std::byte> bytes) {
    const std::lock_guard lock(mutex_);
    piece_header header;
    do {
      receiver_->waitRecv();
      std::memcpy(&header, in_.data(), sizeof header);
    } while (header.call == sign_of_life);
    if (header.call != call || header.bytes != bytes.size()) return false;
    std::copy_n(in_.begin() + sizeof header, bytes.size(), bytes.begin());
    return true;
  }

 private:
  void send_locked(std::uint32_t call, std::span<const std::byte> bytes, std::size_t at_least = 0) {
    const piece_header header{call, static_cast<std::uint32_t>(bytes.size())};
    std::memcpy(out_.data(), &header, sizeof header);
    std::copy(bytes.begin(), bytes.end(), out_.begin() + sizeof header);
    sender_->send(0, std::max(sizeof header + bytes.size(), at_least));
  }

  std::mutex mutex_;
  std::array<std::byte, socket_bytes> out_{}, in_{};
  std::unique_ptr<gloo::transport::Buffer> sender_, receiver_;
};

/// Part `index` of what travels in pieces; empty behind the last.
std::span<std::byte> piece(std::span<std::byte> all, std::size_t index) {
  const std::size_t first = std::min(index * piece_bytes, all.size());
  return all.subspan(first, std::min(piece_bytes, all.size() - first));
}

class gloo_rank final : public collective {
 public:
  gloo_rank(const rank_group& group, meeting_place& place, std::chrono::milliseconds timeout)
      : collective(group.rank, group.size),
        context_(std::make_shared<gloo::rendezvous::Context>(group.rank, group.size)),
        heartbeat_(std::min<std::chrono::milliseconds>(timeout / 4, longest_heartbeat)) {
    std::shared_ptr<gloo::transport::Device> device =
        gloo::transport::tcp::CreateDevice(place.host_among(group).c_str());
    context_->setTimeout(timeout);
    connect(exchanged_addresses(group, place), device);
    peers_.resize(to_size(size()));
    for (int peer = 0; peer < size(); ++peer)
      if (peer != rank()) peers_[to_size(peer)] = std::make_unique<peer_connection>(*context_->getPair(peer));
    greet_all();
  }
  ~gloo_rank() override {
    if (heart_.joinable()) {
      heart_.request_stop();
      heart_.join();
    }
    peers_.clear();
    context_->closeConnections();
  }

  void set_busy(bool is_busy) override {
    if (!heart_.joinable()) heart_ = std::jthread([this](const std::stop_token& stop) { beat_while_busy(stop); });
    const std::lock_guard lock(mutex_);
    is_busy_ = is_busy;
    changed_.notify_all();
  }
  void interrupt() noexcept override { interrupted_.store(true); }

 private:
  void connect(exchanged_addresses addresses, std::shared_ptr<gloo::transport::Device>& device) {
    try {
      context_->connectFullMesh(addresses, device);
    } catch (const collective_failure&) {
      throw;
    } catch (const std::exception& error) {
      if (!addresses.asked()) throw;
      throw collective_failure(
          fmt::format("rank {} of {} cannot be reached ({})", *addresses.asked(), size(), error.what()),
          addresses.asked());
    }
  }

  /// Waits until all ranks read their sockets themselves; before that, Gloo's thread would write one piece over
  /// another. Of two the lower begins, so that neither waits for room while the other does.
  void greet_all() {
    for (int peer = 0; peer < size(); ++peer) {
      if (rank() < peer) greet(peer);
      if (rank() != peer) receive(peer, {});
      if (rank() > peer) greet(peer);
    }
  }

  /// Sends signs of life between the calls of the thread that computes, without making it wait.
  void beat_while_busy(const std::stop_token& stop) try {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      changed_.wait(lock, stop, [this] { return is_busy_; });
      if (changed_.wait_for(lock, stop, heartbeat_, [this] { return !is_busy_; }) || stop.stop_requested()) continue;
      lock.unlock();
      for (const auto& each : peers_)
        if (each) each->send_sign_of_life();
      lock.lock();
    }
  } catch (const std::exception&) {
    // A rank is gone: the next call will report it.
  }

  void exchange(std::span<const transfer> sends, std::span<const transfer> receives) override {
    if (++call_ == sign_of_life) call_ = 0;
    std::size_t pieces = 0;
    for (const auto* list : {&sends, &receives})
      for (const transfer& each : *list) pieces = std::max(pieces, (each.bytes.size() + piece_bytes - 1) / piece_bytes);
    for (std::size_t at = 0; at < pieces + pieces_ahead; ++at) {
      if (interrupted_.load()) throw collective_failure("told to stop waiting for the other ranks");
      for (const transfer& each : sends)
        if (const auto next = piece(each.bytes, at); !next.empty()) send(each.peer, next);
      if (at < pieces_ahead) continue;
      for (const transfer& each : receives)
        if (const auto next = piece(each.bytes, at - pieces_ahead); !next.empty()) receive(each.peer, next);
    }
  }

  void greet(int peer) {
    call_peer(peer, [&](peer_connection& to) { to.greet(call_); });
  }
  void send(int peer, std::span<const std::byte> bytes) {
    call_peer(peer, [&](peer_connection& to) { to.send(call_, bytes); });
  }
  void receive(int peer, std::span<std::byte> bytes) {
    call_peer(peer, [&](peer_connection& from) {
      if (!from.receive(call_, bytes))
        throw collective_failure(fmt::format("rank {} of {} is out of step", peer, size()));
    });
  }
  /// Turns what Gloo throws into a collective_failure.
  template <class Call>
  void call_peer(int peer, Call call) {
    try {
      call(*peers_[to_size(peer)]);
    } catch (const collective_failure&) {
      throw;
    } catch (const std::exception& error) {
      throw collective_failure(fmt::format("rank {} of {} is gone or silent ({})", peer, size(), error.what()), peer);
    }
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::vector<std::unique_ptr<peer_connection>> peers_;  ///< by rank
  /// Begins anew after the last number, since replicas live longer than that; and starts shortly before it, so that
  /// every test sees it do so.
  std::uint32_t call_ = sign_of_life - 4;
  std::atomic<bool> interrupted_{false};
  const std::chrono::milliseconds heartbeat_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool is_busy_ = false;
  std::jthread heart_;  ///< from the first set_busy on
};

}  // namespace

std::unique_ptr<collective> make_gloo_rank(const rank_group& group, meeting_place& place,
                                           std::chrono::milliseconds timeout) {
  try {
    return std::make_unique<gloo_rank>(group, place, timeout);
  } catch (const gloo::Exception& error) {  // input_error and collective_failure go on
    throw collective_failure(fmt::format("this rank cannot connect to others ({})", error.what()));
  }
}

}  // namespace troupe
