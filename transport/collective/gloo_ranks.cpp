#include "transport/collective/gloo_ranks.hpp"

#include <fmt/format.h>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <charconv>
#include <mutex>

namespace troupe {
namespace {

using buffers = std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>>;
using moment = std::chrono::steady_clock::time_point;

/// Gloo asks for a place to leave addresses: ranks tell them to each other instead.
class told_addresses final : public gloo::rendezvous::Store {
 public:
  told_addresses(const meeting& of, meeting_place& place) : of_(of), place_(place) {}

  void set(const std::string&, const std::vector<char>& own) override {
    words_ = place_.exchange_words(of_, std::string(own.begin(), own.end()));
  }
  /// Gloo's names for ranks end in their numbers.
  std::vector<char> get(const std::string& name) override {
    const char* digits = name.data() + (name.find_last_not_of("0123456789") + 1);
    std::size_t at = words_.size();
    std::from_chars(digits, name.data() + name.size(), at);
    if (at >= words_.size()) throw collective_failure(-1, fmt::format("'{}' has no address", name));
    return {words_[at].begin(), words_[at].end()};
  }
  void wait(const std::vector<std::string>&) override {}

 private:
  const meeting& of_;
  meeting_place& place_;
  std::vector<std::string> words_;
};

class gloo_rank final : public collective {
 public:
  gloo_rank(const meeting& of, meeting_place& place, std::chrono::milliseconds timeout)
      : collective(of.rank, of.size), timeout_(timeout) {
    std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(place.host().c_str());
    auto made = std::make_shared<gloo::rendezvous::Context>(of.rank, of.size);
    made->setTimeout(of.patience / 5);  // it waits five times as long for connections
    told_addresses addresses(of, place);
    made->connectFullMesh(addresses, device);
    context_ = std::move(made);
  }
  ~gloo_rank() override { context_->closeConnections(); }

  void interrupt() noexcept override {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    for (const auto& each : receiving_) each->abortWaitRecv();
    for (const auto& each : sending_) each->abortWaitSend();
  }

 private:
  void exchange(std::span<const transfer> sends, std::span<const transfer> receives) override {
    take_up(sends, receives);
    try {
      carry_out(sends, receives);
    } catch (...) {
      take_up({}, {});  // nothing may be written to what the caller now owns alone
      throw;
    }
  }

  void take_up(std::span<const transfer> sends, std::span<const transfer> receives) {
    buffers to_receive = buffers_of(receives), to_send = buffers_of(sends);
    const std::lock_guard lock(mutex_);
    std::swap(receiving_, to_receive);
    std::swap(sending_, to_send);
  }

  void carry_out(std::span<const transfer> sends, std::span<const transfer> receives) {
    const moment deadline = std::chrono::steady_clock::now() + timeout_;
    ++call_;
    require_not_interrupted();
    for (std::size_t i = 0; i < receives.size(); ++i)
      with(receives[i].peer, [&] { receiving_[i]->recv(receives[i].peer, call_); });
    for (std::size_t i = 0; i < sends.size(); ++i)
      with(sends[i].peer, [&] { sending_[i]->send(sends[i].peer, call_); });
    for (std::size_t i = 0; i < receives.size(); ++i)
      with(receives[i].peer, [&] { require(receiving_[i]->waitRecv(nullptr, left(deadline))); });
    for (std::size_t i = 0; i < sends.size(); ++i)
      with(sends[i].peer, [&] { require(sending_[i]->waitSend(nullptr, left(deadline))); });
  }

  buffers buffers_of(std::span<const transfer> transfers) const {
    buffers made;
    for (const transfer& each : transfers)
      made.push_back(context_->createUnboundBuffer(each.bytes.data(), each.bytes.size()));
    return made;
  }

  static std::chrono::milliseconds left(moment deadline) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    return std::max(ms, std::chrono::milliseconds(1));
  }
  static void require(bool done) {
    if (!done) throw_interrupted();
  }
  void require_not_interrupted() {
    const std::lock_guard lock(mutex_);
    require(!interrupted_);
  }
  [[noreturn]] static void throw_interrupted() {
    throw collective_failure(-1, "told to stop waiting for the other ranks");
  }
  /// What Gloo throws, as ours.
  template <class Call>
  void with(int peer, Call call) const {
    try {
      call();
    } catch (const gloo::Exception& error) {
      throw collective_failure(peer, fmt::format("rank {} of {} is gone or silent ({})", peer, size(), error.what()));
    }
  }

  std::chrono::milliseconds timeout_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  std::uint64_t call_ = 0;
  std::mutex mutex_;  ///< of what follows; the buffers change on the caller's thread alone
  buffers receiving_, sending_;
  bool interrupted_ = false;
};

}  // namespace

std::unique_ptr<collective> make_gloo_rank(const meeting& of, meeting_place& place, std::chrono::milliseconds timeout) {
  try {
    return std::make_unique<gloo_rank>(of, place, timeout);
  } catch (const gloo::Exception& error) {
    throw collective_failure(-1, fmt::format("ranks cannot connect to each other ({})", error.what()));
  }
}

}  // namespace troupe
