#include <utility>

#include "base/error.hpp"
#include "transport/zmq/bus_impl.hpp"
#include "transport/zmq/codec.hpp"

namespace troupe {

using namespace std::chrono_literals;
using detail::control_kind;

namespace {

/// A confirmation goes along with the next frame to the other side, but not with each of many.
constexpr auto between_confirmations = 100ms;
/// It goes by itself if none is sent for so long: longer than the pause between two heartbeats, which are answered.
constexpr auto longest_unconfirmed = 300ms;

}  // namespace

// Of a connection that the other side has made, an attempt to send shows whether it has ended.
bool bus::impl::is_connected(link_id id) {
  const std::lock_guard lock(mutex_);
  link* asked = find(id);
  if (asked == nullptr || stopping_) return false;
  if (asked->up && !asked->dialed()) say(*asked, control_kind::probe);
  return asked->up;
}

bool bus::impl::is_client(link_id id) {
  const std::lock_guard lock(mutex_);
  const link* known = find(id);
  return known != nullptr && known->has_client_key;
}

bus::impl::link* bus::impl::find(link_id id) {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : found->second.get();
}

// received: [header, body, attachment?]
result<frame_header, frame_error> bus::impl::check(parts received, bool too_many) const {
  if (too_many || received.size() < 2 || received.size() > 3) return frame_error::wrong_parts;
  const auto header = read_header(detail::bytes_of(received[0]), options_.limits);
  if (!header) return header;
  if ((received.size() == 3) != (header->attachment_bytes > 0)) return frame_error::wrong_parts;
  if (received[1].size() != header->body_bytes) return frame_error::wrong_length;
  if (received.size() == 3 && received[2].size() != header->attachment_bytes) return frame_error::wrong_length;
  return header;
}

/// For people: why what came is no frame.
std::string bus::impl::fault_text(frame_error error, parts received) {
  return describe(error, received.empty() ? std::span<const std::byte>() : detail::bytes_of(received[0]));
}

void bus::impl::on_message(link& from, parts received, bool too_many) {
  const auto header = check(received, too_many);
  if (!header) {
    return shut(from,
                {fmt::format("{} sent what cannot be read: {}", from.peer(), fault_text(header.error(), received)),
                 header.error() == frame_error::wrong_version},
                farewell::told);
  }
  if (header->kind < first_reserved_kind) return on_data(from, *header, received);
  const bool is_control = header->sequence == 0 && received.size() == 2;
  if (!is_control || !on_control(from, static_cast<control_kind>(header->kind), detail::bytes_of(received[1])))
    shut(from, {fmt::format("{} sent {}", from.peer(), name_of(frame_error::wrong_control))}, farewell::told);
}

void bus::impl::on_data(link& from, const frame_header& header, parts received) {
  // Not counted, so that the next process on this side gets them again.
  if (stopping_) return;
  const auto fault = from.up ? from.in.accept(header) : frame_error::wrong_control;
  if (fault) {
    return shut(from, {fmt::format("{} sent {}", from.peer(), name_of(*fault))}, farewell::told);
  }
  const auto body = detail::bytes_of(received[1]);
  frame message{
      .kind = header.kind, .correlation = header.correlation, .body = {body.begin(), body.end()}, .attachment = {}};
  if (received.size() == 3) message.attachment = detail::shared_from(std::move(received[2]));
  happened_.emplace_back(from.id, std::move(message));
  if (from.in.confirm_now())
    confirm(from);
  else
    confirm_later(from);
}

bool bus::impl::on_control(link& from, control_kind kind, std::span<const std::byte> body) {
  switch (kind) {
    case control_kind::welcome: {
      const auto welcome = decode<detail::welcome>(body);
      if (!welcome || !from.dialed() || from.up) return false;
      on_welcome(from, *welcome);
      return true;
    }
    case control_kind::confirmation: {
      const auto confirmation = decode<detail::confirmation>(body);
      return confirmation && from.up && from.out.confirm(confirmation->received);
    }
    case control_kind::probe:
      if (!from.up) return false;
      confirm(from);
      return true;
    case control_kind::goodbye:
      shut(from, {.why = "the other side has closed the link", .is_goodbye = true}, farewell::silent);
      return true;
    case control_kind::greeting:
      break;
  }
  return false;
}

// Where large packets are lost on the way, every connection comes up, stands still at the first large frame and breaks.
void bus::impl::begin_connection(link& to) {
  const std::uint64_t lacks = to.out.empty() ? 0 : to.out.first_kept();
  if (std::exchange(to.stuck_at, lacks) != lacks || lacks == 0) to.stuck_since = now_;
  if (to.may_be_forgotten() && now_ - to.stuck_since >= options_.forget_after)
    return shut(to,
                {fmt::format("{}: answers, but for {} ms nothing that was sent got there: see whether large packets "
                             "pass (the network's MTU)",
                             to.peer(), options_.forget_after.count())},
                farewell::told);
  flush(to);
}

void bus::impl::flush(link& to) {
  if (!to.out.next()) return;
  while (const auto next = to.out.next()) {
    if (!transmit(to, next->header, detail::message_of(next->body, next),
                  detail::message_of(next->attachment.bytes(), next->attachment.owner())))
      return;
    to.out.sent();
  }
  confirm_along(to);
}

bool bus::impl::transmit(link& to, const frame_header& header, zmq::message_t body, zmq::message_t attachment) {
  zmq::socket_t& socket = to.dialed() ? to.dealer : router_;
  if (!to.dialed()) {
    zmq::message_t routing(to.routing.data(), to.routing.size());
    if (!detail::send_part(socket, routing, true)) {
      lose(to);
      note_input(to);
      return false;
    }
  }
  zmq::message_t head(frame_header::size);
  write_header(header,
               std::span<std::byte, frame_header::size>(static_cast<std::byte*>(head.data()), frame_header::size));
  const bool attached = header.attachment_bytes > 0;
  const bool sent = detail::send_part(socket, head, true) && detail::send_part(socket, body, attached) &&
                    (!attached || detail::send_part(socket, attachment, false));
  note_input(to);
  return sent;
}

void bus::impl::say(link& to, control_kind kind, const std::vector<std::byte>& body) {
  frame_header header;
  header.kind = static_cast<std::uint16_t>(kind);
  header.body_bytes = body.size();
  transmit(to, header, zmq::message_t(body.data(), body.size()), zmq::message_t());
}

void bus::impl::confirm(link& from) {
  from.in.confirmed();
  from.confirm_at = clock::time_point::max();
  from.confirmed_at = clock::now();
  say(from, control_kind::confirmation, encode(detail::confirmation{from.in.last()}));
}

void bus::impl::confirm_later(link& from) {
  if (from.confirm_at != clock::time_point::max()) return;
  from.confirm_at = now_ + longest_unconfirmed;
  to_confirm_.emplace_back(from.confirm_at, from.id);
}

// With a frame that is sent anyway it wakes nobody: neither here nor on the other side.
void bus::impl::confirm_along(link& from) {
  if (from.up && from.in.unconfirmed() && clock::now() - from.confirmed_at >= between_confirmations) confirm(from);
}

void bus::impl::confirmations_due() {
  for (; !to_confirm_.empty(); to_confirm_.pop_front()) {
    const auto& [at, id] = to_confirm_.front();
    link* from = find(id);
    if (from == nullptr || from->confirm_at != at) continue;
    if (now_ < at) return;
    from->confirm_at = clock::time_point::max();
    if (from->up && from->in.unconfirmed()) confirm(*from);
  }
}

void bus::impl::shut(link& ended, link_end end, farewell how) {
  happened_.emplace_back(ended.id, std::move(end));
  remove(ended, how);
}

void bus::impl::remove(link& ended, farewell how) {
  if (how == farewell::told && ended.up) {
    say(ended, control_kind::goodbye);
    if (ended.dialed()) ended.dealer.set(zmq::sockopt::linger, 1000);
  }
  if (ended.dialed()) {
    hang_up(ended);
    up_or_gone_.notify_all();
  } else {
    by_routing_.erase(ended.routing);
    by_other_.erase({ended.other, ended.others_number});
  }
  links_.erase(ended.id);
}

}  // namespace troupe
