#include <algorithm>
#include <cerrno>

#include <sys/epoll.h>

#include "base/error.hpp"
#include "base/host_port.hpp"
#include "transport/zmq/bus_impl.hpp"
#include "transport/zmq/codec.hpp"
#include "transport/zmq/endpoint.hpp"
#include "transport/zmq/mechanism.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr int mechanism_mismatch = ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH;
constexpr std::uint32_t not_allowed = 400;
constexpr auto between_asking = 5s;

std::string other_mechanism(const std::string& endpoint) {
  return fmt::format("{}: one side uses keys and the other does not: a command takes --key, a node keys in [cluster]",
                     endpoint);
}

}  // namespace

link_id bus::impl::connect(const std::string& endpoint, const std::string& server_key, dialing how) {
  detail::check_endpoint(endpoint);
  if (const auto place = split_endpoint(endpoint); place && place->host == "*")
    refuse("{}: * is for listening at every address: name one of them, as tcp://127.0.0.1:{}", endpoint, place->port);
  const std::lock_guard lock(mutex_);
  if (stopping_) return no_link;
  auto added = std::make_unique<link>(link_id(++last_id_), options_.queue_bytes);
  added->endpoint = endpoint;
  added->server_key = server_key;
  added->how = how;
  try {
    dial(*added);
  } catch (const zmq::error_t& fault) {
    hang_up(*added);
    refuse("{}: cannot connect: {}", endpoint, fault.what());
  }
  const link_id id = added->id;
  links_.emplace(id, std::move(added));
  return id;
}

bool bus::impl::wait_up(link_id id, std::chrono::milliseconds longest, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  bool up = false;
  up_or_gone_.wait_for(lock, stop, longest, [&] {
    const link* known = find(id);
    up = known != nullptr && known->up;
    return up || known == nullptr;
  });
  return up;
}

void bus::impl::dial(link& to) {
  if (!detail::names_a_host(to.endpoint)) return dial_at(to, to.endpoint);
  if (to.untried.empty()) {
    ask_for_addresses(to);
    return wake();
  }
  const std::string next = std::move(to.untried.front());
  to.untried.pop_front();
  dial_at(to, next);
}

// The greeting waits in the socket until the connection is made, and is the first thing that the other side gets.
void bus::impl::dial_at(link& to, const std::string& address) {
  to.dialed_at = address;
  to.dealer = detail::dialing_socket(context_, options_, address, to.server_key);
  to.monitor = detail::watch(context_, to.dealer,
                             ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH |
                                 ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL);
  const int dealer_signal = detail::signal_of(to.dealer), monitor_signal = detail::signal_of(to.monitor);
  watch_signal(dealer_signal, {source_kind::dealer, to.id});
  to.dealer_signal = dealer_signal;
  watch_signal(monitor_signal, {source_kind::dealer_monitor, to.id});
  to.monitor_signal = monitor_signal;
  // libzmq signals input only after a read that found nothing, so both are read once now.
  ready_.insert(ready_.end(), {{source_kind::dealer, to.id}, {source_kind::dealer_monitor, to.id}});
  wake();
  to.dealer.connect(address);
  say(to, detail::control_kind::greeting,
      encode(detail::greeting{.from = instance_,
                              .link = to.id.value,
                              .attempt = ++to.attempt,
                              .to = to.other,
                              .session = to.session,
                              .received = to.in.last(),
                              .first = to.out.first_kept()}));
}

void bus::impl::hang_up(link& from) {
  for (int* signal : {&from.dealer_signal, &from.monitor_signal})
    if (*signal >= 0) ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, std::exchange(*signal, -1), nullptr);
  if (std::exchange(from.up, false)) from.unreachable_since = clock::now();
  from.input_noted = false;
  detail::stop_watching(from.dealer, from.monitor);
  from.dealer.close();
}

void bus::impl::redial_later(link& to) {
  to.patience = std::clamp<std::chrono::milliseconds>(to.patience * 2, 20ms, 500ms);
  redials_.emplace(clock::now() + to.patience, to.id);
}

void bus::impl::redial_due() {
  while (!redials_.empty() && redials_.begin()->first <= now_) {
    link* to = find(redials_.begin()->second);
    redials_.erase(redials_.begin());
    if (to == nullptr) continue;
    try {
      dial(*to);
    } catch (const zmq::error_t&) {  // no file or socket is left now
      hang_up(*to);
      redial_later(*to);
    }
  }
}

void bus::impl::read_dealer(link_id id) {
  detail::message_parts received;
  for (int i = 0; i < frames_at_once; ++i) {
    link* from = find(id);
    if (from == nullptr || !from->dealer) return;
    from->input_noted = false;
    if (!detail::receive(from->dealer, received)) return;
    on_message(*from, parts(received.part.data(), received.count), received.too_many);
  }
  ready_.push_back({source_kind::dealer, id});
}

void bus::impl::read_dealer_monitor(link_id id) {
  for (link* from = find(id); from != nullptr && from->monitor; from = find(id)) {
    const auto event = detail::next_event(from->monitor);
    if (!event) return;
    note_event(*from, *event);
  }
}

/// `from` may be gone after it.
void bus::impl::note_event(link& from, const detail::socket_event& event) {
  switch (event.kind) {
    case ZMQ_EVENT_DISCONNECTED:
      return note_disconnected(from);
    case ZMQ_EVENT_CONNECT_RETRIED:
      // libzmq tries the same address again, but the listener may have another one of its name.
      if (!detail::names_a_host(from.endpoint)) return;
      hang_up(from);
      return redial_later(from);
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
      if (event.value == not_allowed)
        shut(from,
             {fmt::format("{} refuses this process' key: a node needs the head's own cluster.key; a client's "
                          "clients/NAME.pub must lie beside the head's",
                          from.endpoint)},
             farewell::silent);
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
      if (event.value == mechanism_mismatch) shut(from, {other_mechanism(from.endpoint)}, farewell::silent);
      return;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
      // If the mechanisms differ, the side that sees the other's greeting first ends the connection, and libzmq then
      // does not tell us which mechanism the other side has.
      if (stopping_ || (event.value != EPIPE && event.value != ECONNRESET) || now_ < from.ask_mechanism_at) return;
      from.ask_mechanism_at = now_ + between_asking;
      return ask_for_mechanism(from);
    default:
      return;
  }
}

/// Reads what came before the connection ended, as the socket goes now.
void bus::impl::note_disconnected(link& from) {
  const link_id id = from.id;
  read_dealer(id);
  if (find(id) != &from) return;
  hang_up(from);
  redial_later(from);
}

/// Looking up a name takes as long as the name servers want, and other links must be read meanwhile.
void bus::impl::ask_for_addresses(const link& of) {
  inquiries_.ask([this, asked = of.id, name = of.endpoint] {
    return [this, asked, addresses = detail::numeric_endpoints(name)] { take_addresses(asked, addresses); };
  });
}

/// They are dialed by the bus' thread. Without one the name is asked for again, as a place is where nobody listens.
void bus::impl::take_addresses(link_id asked, const std::vector<std::string>& addresses) {
  const std::lock_guard lock(mutex_);
  wake();
  link* to = find(asked);
  if (to == nullptr) return;
  if (addresses.empty()) return redial_later(*to);
  to->untried.assign(addresses.begin(), addresses.end());
  redials_.emplace(clock::now(), to->id);
}

void bus::impl::ask_for_mechanism(const link& of) {
  inquiries_.ask([this, asked = of.id, address = of.dialed_at] {
    return [this, asked, theirs = detail::mechanism_at(address)] { take_mechanism(asked, theirs); };
  });
}

/// Whether the other side uses keys where we do not, or the other way round.
void bus::impl::take_mechanism(link_id asked, const std::string& theirs) {
  const std::lock_guard lock(mutex_);
  wake();
  if (theirs.empty() || theirs == (options_.keys ? "CURVE" : "NULL")) return;
  link* found = find(asked);
  if (found == nullptr || found->up) return;
  shut(*found, {other_mechanism(found->endpoint)}, farewell::silent);
}

void bus::impl::on_welcome(link& from, const detail::welcome& welcome) {
  const bool same = from.other == welcome.from && from.session == welcome.session;
  if (!same) from.in.begin_after(0);
  from.other = welcome.from;
  from.session = welcome.session;
  from.out.restart();
  if (!from.out.confirm(welcome.received))
    return shut(from, {fmt::format("{} confirms frames that were never sent", from.endpoint)}, farewell::told);
  from.up = true;
  up_or_gone_.notify_all();
  from.patience = 0ms;
  from.untried.clear();  // so that the name is looked up anew if the connection breaks
  begin_connection(from);
}

}  // namespace troupe
