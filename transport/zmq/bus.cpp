#include "transport/zmq/bus.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <csignal>
#include <stdexcept>

#include <pthread.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/entropy.hpp"
#include "base/error.hpp"
#include "base/host_port.hpp"
#include "base/thread_pool.hpp"
#include "base/to_size.hpp"
#include "transport/zmq/bus_impl.hpp"
#include "transport/zmq/endpoint.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr auto last_words = 1s;

void check_options(const bus::options& options) {
  if (options.listen.empty()) return;
  detail::check_endpoint(options.listen);
  if (!options.keys && !options.insecure && !detail::is_loopback(options.listen))
    refuse(
        "{}: other machines reach this address, so links must be encrypted: make keys with `troupe keygen`, or say "
        "`insecure = true`",
        options.listen);
  if (options.keys && options.keys->allowed.empty())
    refuse("{}: no key is allowed to connect: `troupe keygen` makes the files that list them", options.listen);
}

void name_thread_and_block_signals() {
  ::pthread_setname_np(::pthread_self(), "troupe-bus");
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
}

std::uint64_t packed(std::uint8_t kind, link_id link) {
  return link.value << 8 | kind;
}

}  // namespace

bus::bus(options chosen, events handlers) : impl_(std::make_unique<impl>(std::move(chosen), std::move(handlers))) {}
bus::~bus() = default;
const std::string& bus::endpoint() const {
  return impl_->endpoint();
}
link_id bus::connect(const std::string& endpoint, const std::string& server_key, dialing how) {
  return impl_->connect(endpoint, server_key, how);
}
bool bus::wait_up(link_id link, std::chrono::milliseconds longest, const std::stop_token& stop) {
  return impl_->wait_up(link, longest, stop);
}
send_status bus::send(link_id to, frame message) {
  return impl_->send(to, std::move(message));
}
void bus::close(link_id link) {
  impl_->close(link);
}
bool bus::is_connected(link_id link) {
  return impl_->is_connected(link);
}

bool bus::is_client(link_id link) const {
  return impl_->is_client(link);
}

bus::impl::impl(options chosen, events handlers)
    : options_(std::move(chosen)), handlers_(std::move(handlers)), instance_{entropy(), entropy()} {
  check_options(options_);
  require_threads(3);  // ZeroMQ's two and one of our own
  zmq_ctx_set(context_.handle(), ZMQ_MAX_SOCKETS, 16384);
  if (!options_.listen.empty()) listen();
  if (!epoll_.is_open()) refuse("no more files can be opened: raise the limit (ulimit -n)");
  watch_signal(wake_up_.descriptor(), {source_kind::wake_up});
  if (router_) {
    watch_signal(detail::signal_of(router_), {source_kind::router});
    watch_signal(detail::signal_of(router_monitor_), {source_kind::router_monitor});
    ready_ = {{source_kind::router}, {source_kind::router_monitor}};
  }
  if (zap_) {
    watch_signal(detail::signal_of(zap_->socket()), {source_kind::zap});
    ready_.push_back({source_kind::zap});
  }
  look_after_at_ = now_;
  thread_ = std::thread([this] { run(); });
}

bus::impl::~impl() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    stop_at_ = clock::now() + last_words;
  }
  wake();
  thread_.join();
  inquiries_.end();  // a name server may take far longer to answer than anybody waits for the end of a process
}

void bus::impl::listen() {
  if (options_.keys) zap_ = std::make_unique<detail::zap_handler>(context_, *options_.keys);
  try {
    router_ = detail::listening_socket(context_, options_);
    router_monitor_ = detail::watch(context_, router_, ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL);
  } catch (const zmq::error_t& fault) {
    refuse("{}: cannot listen there: {}", options_.listen, fault.what());
  }
  endpoint_ = router_.get(zmq::sockopt::last_endpoint);
}

send_status bus::impl::send(link_id to, frame message) {
  assert(message.kind < first_reserved_kind);
  if (message.body.size() > options_.limits.body_bytes || message.attachment.size() > options_.limits.attachment_bytes)
    throw std::length_error(fmt::format("a frame of kind {} is longer than the bus' limits", message.kind));
  const std::lock_guard lock(mutex_);
  link* found = find(to);
  if (found == nullptr || stopping_) return send_status::gone;
  if (!found->out.takes(message)) return send_status::full;
  found->out.push(std::move(message));
  if (found->up) flush(*found);
  return send_status::queued;
}

void bus::impl::close(link_id id) {
  const std::lock_guard lock(mutex_);
  if (link* found = find(id)) remove(*found, farewell::told);
}

void bus::impl::run() {
  name_thread_and_block_signals();
  std::vector<news> happened;
  for (int timeout = 0;;) {
    wait_for_input(timeout);
    {
      const std::lock_guard lock(mutex_);
      now_ = clock::now();
      for (const source& from : std::exchange(ready_, {})) read(from);
      confirmations_due();
      redial_due();
      look_after_links();
      if (stopping_ && may_stop()) break;
      happened.swap(happened_);
      if (stopping_) happened.clear();
      timeout = next_timeout();
    }
    deliver(happened);
    inquiries_.begin();
  }
  const std::lock_guard lock(mutex_);
  close_sockets();
}

void bus::impl::wait_for_input(int timeout_ms) {
  std::array<epoll_event, 64> events;  // NOLINT(cppcoreguidelines-pro-type-member-init): the kernel fills it
  const int count = ::epoll_wait(epoll_.number(), events.data(), static_cast<int>(events.size()), timeout_ms);
  const std::lock_guard lock(mutex_);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t from = events[to_size(i)].data.u64;
    ready_.push_back({static_cast<source_kind>(from & 0xff), link_id(from >> 8)});
  }
}

void bus::impl::read(const source& from) {
  switch (from.kind) {
    case source_kind::wake_up:
      return wake_up_.take();
    case source_kind::router:
      return read_router();
    case source_kind::router_monitor:
      return read_router_monitor();
    case source_kind::zap:
      return zap_->answer([&](const std::string& address) {
        report(fmt::format("refused a connection from {}: its key is not allowed", address));
      });
    case source_kind::dealer:
      return read_dealer(from.link);
    case source_kind::dealer_monitor:
      return read_dealer_monitor(from.link);
  }
}

void bus::impl::watch_signal(int signal, const source& from) const {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.u64 = packed(static_cast<std::uint8_t>(from.kind), from.link);
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, signal, &wanted) != 0) throw zmq::error_t();
}

// A sender may have consumed the signal of input that came meanwhile, so this looks for input itself.
void bus::impl::note_input(link& sent_to) {
  const bool dialed = sent_to.dialed();
  bool& noted = dialed ? sent_to.input_noted : router_noted_;
  if (noted || !detail::has_input(dialed ? sent_to.dealer : router_)) return;
  noted = true;
  ready_.push_back(dialed ? source{source_kind::dealer, sent_to.id} : source{source_kind::router});
  wake();
}

void bus::impl::wake() const {
  wake_up_.give();
}

int bus::impl::next_timeout() const {
  if (!ready_.empty() || inquiries_.may_begin()) return 0;
  auto next = std::min(look_after_at_, stop_at_);
  if (!to_confirm_.empty()) next = std::min(next, to_confirm_.front().first);
  if (!redials_.empty()) next = std::min(next, redials_.begin()->first);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

bool bus::impl::may_stop() {
  if (!std::exchange(settling_, true)) settle();
  return now_ >= stop_at_ ||
         std::all_of(links_.begin(), links_.end(), [](const auto& known) { return known.second->out.empty(); });
}

// Confirms what came, so that a process that comes after this one does not get it again.
void bus::impl::settle() {
  for (auto& [id, known] : links_) {
    if (known->up && known->in.unconfirmed()) confirm(*known);
    if (known->up && !known->out.empty()) say(*known, detail::control_kind::probe);
  }
}

void bus::impl::deliver(std::vector<news>& happened) {
  for (news& each : happened) {
    if (auto* arrived = std::get_if<frame>(&each.content)) {
      if (handlers_.on_frame) handlers_.on_frame(each.link, std::move(*arrived));
    } else if (handlers_.on_closed) {
      handlers_.on_closed(each.link, std::get<link_end>(each.content));
    }
  }
  happened.clear();
}

// Links that others opened go without a word, since their owners will connect to our successor. On links that we
// opened, the other side hears that we are gone.
void bus::impl::close_sockets() {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(stop_at_ - clock::now()).count();
  const int linger = static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
  while (!links_.empty()) {
    link& open = *links_.begin()->second;
    if (open.dialed() && open.up) {
      say(open, detail::control_kind::goodbye);
      open.dealer.set(zmq::sockopt::linger, linger);
    }
    remove(open, farewell::silent);
  }
  // Before the socket closes, while the file is still ours: the next process that listens there makes its own.
  if (const auto file = socket_file(options_.listen)) ::unlink(file->c_str());
  if (router_) router_.set(zmq::sockopt::linger, linger);
  detail::stop_watching(router_, router_monitor_);
  router_.close();
  zap_.reset();
}

}  // namespace troupe
