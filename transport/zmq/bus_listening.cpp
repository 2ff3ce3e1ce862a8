#include <algorithm>

#include "base/error.hpp"
#include "transport/zmq/bus_impl.hpp"
#include "transport/zmq/codec.hpp"

namespace troupe {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t most_refused = 4096;
constexpr int reports_per_second = 20;
constexpr auto silence = 2s;

}  // namespace

void bus::impl::read_router() {
  router_noted_ = false;
  detail::message_parts received;
  for (int i = 0; i < frames_at_once; ++i) {
    if (!detail::receive(router_, received)) return;
    const std::string routing = received.part[0].to_string();
    const auto rest = parts(received.part.data(), received.count).subspan(1);
    const auto known = by_routing_.find(routing);
    if (known != by_routing_.end()) {
      known->second->heard = now_;
      on_message(*known->second, rest, received.too_many);
    } else if (!refused_.contains(routing)) {
      on_stranger(routing, rest, received.too_many);
    }
  }
  ready_.push_back({source_kind::router});
}

void bus::impl::read_router_monitor() {
  while (const auto event = detail::next_event(router_monitor_))
    if (event->kind == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
      report("refused a connection: no ZeroMQ of our kind, or without the cluster's key");
}

void bus::impl::on_stranger(const std::string& routing, parts received, bool too_many) {
  const std::string address = received.empty() ? "an unknown address" : detail::peer_address(received[0]);
  const auto header = check(received, too_many);
  if (!header) {
    // Any frame of ours tells it why.
    if (header.error() == frame_error::wrong_version) dismiss(routing);
    return refuse_stranger(routing, address, fault_text(header.error(), received));
  }
  if (header->kind != static_cast<std::uint16_t>(detail::control_kind::greeting))
    // Frames of a link that was closed, or of a connection that its dialer has given up: nobody needs to know.
    return;
  const auto greeting = decode<detail::greeting>(detail::bytes_of(received[1]));
  if (!greeting || greeting->first == 0) return refuse_stranger(routing, address, name_of(frame_error::wrong_control));
  on_greeting(routing, received[0], *greeting);
}

void bus::impl::on_greeting(const std::string& routing, const zmq::message_t& header,
                            const detail::greeting& greeting) {
  const auto known = by_other_.find({greeting.from, greeting.link});
  // libzmq reads connections in turn: what an earlier one still held may come after the greeting of the next.
  if (known != by_other_.end() && greeting.attempt <= known->second->attempt) return;
  link* from = known != by_other_.end() ? resume(*known->second, greeting) : add_link(greeting);
  const std::string address = detail::peer_address(header);
  if (from == nullptr) {
    dismiss(routing);
    return refuse_stranger(routing, address, "its link is not known any more, or there are too many");
  }
  by_routing_.erase(from->routing);
  from->routing = routing;
  from->attempt = greeting.attempt;
  from->address = address;
  from->has_client_key = detail::peer_user(header) == detail::client_user;
  from->heard = now_;
  by_routing_[routing] = from;
  from->up = true;
  from->in.confirmed();
  from->out.restart();
  say(*from, detail::control_kind::welcome,
      encode(detail::welcome{.from = instance_, .session = from->id.value, .received = from->in.last()}));
  if (from->up) begin_connection(*from);
}

bus::impl::link* bus::impl::add_link(const detail::greeting& greeting) {
  // A session of ours that is not in the table was closed, and the other side has not heard of that.
  if (greeting.to == instance_ || by_other_.size() >= options_.max_links) return nullptr;
  auto dialer = std::make_unique<link>(link_id(++last_id_), options_.queue_bytes);
  link* added = dialer.get();
  added->other = greeting.from;
  added->others_number = greeting.link;
  added->in.begin_after(greeting.first - 1);
  links_.emplace(added->id, std::move(dialer));
  by_other_.emplace(std::pair(greeting.from, greeting.link), added);
  return added;
}

bus::impl::link* bus::impl::resume(link& known, const detail::greeting& greeting) {
  // A dialer that never got our welcome still speaks of the process before us.
  const bool welcomed = greeting.to == instance_;
  const bool possible = (!welcomed || greeting.session == known.id.value) && greeting.first - 1 <= known.in.last() &&
                        known.out.confirm(welcomed ? greeting.received : 0);
  if (possible) return &known;
  shut(known, {fmt::format("{}: came back with another past", known.address)}, farewell::silent);
  return nullptr;
}

void bus::impl::lose(link& unreachable) {
  by_routing_.erase(unreachable.routing);
  unreachable.routing.clear();
  unreachable.up = false;
  unreachable.unreachable_since = clock::now();
}

// If the other side's connection ends, libzmq does not tell us; only an attempt to send shows it.
void bus::impl::look_after_links() {
  if (now_ < look_after_at_) return;
  look_after_at_ = now_ + std::min<clock::duration>(1s, options_.forget_after / 2);
  std::vector<link*> forgotten;
  for (const auto& [id, known] : links_) {
    if (known->up && !known->dialed() && now_ - known->heard > silence) say(*known, detail::control_kind::probe);
    if (!known->up && known->may_be_forgotten() && now_ - known->unreachable_since >= options_.forget_after)
      forgotten.push_back(known.get());
  }
  for (link* known : forgotten)
    shut(*known, {fmt::format("{}: could not be reached for {} ms", known->peer(), options_.forget_after.count())},
         farewell::silent);
}

void bus::impl::dismiss(const std::string& routing) {
  link nobody(no_link, 0);
  nobody.routing = routing;
  say(nobody, detail::control_kind::goodbye);
}

void bus::impl::refuse_stranger(const std::string& routing, const std::string& address, std::string_view why) {
  if (refused_.size() >= most_refused) refused_.clear();
  refused_.insert(routing);
  report(fmt::format("refused a peer at {}: {}", address, why));
}

void bus::impl::report(std::string why) {
  if (now_ - reports_since_ > 1s) {
    reports_since_ = now_;
    reports_ = 0;
  }
  if (++reports_ <= reports_per_second) happened_.emplace_back(no_link, link_end{std::move(why)});
}

}  // namespace troupe
