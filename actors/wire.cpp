#include "actors/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace troupe {
namespace {

/// Sends a frame. Returns why the link cannot be used any more, or an empty text. A frame that is too long is our own
/// mistake, but no actor may die of it: the process would stay and never answer again.
std::string fault_of_sending(bus& through, link_id to, frame sent) {
  try {
    return through.send(to, std::move(sent)) == send_status::full ? "reads too slowly" : "";
  } catch (const std::length_error& error) {
    return error.what();
  }
}

}  // namespace

/// Frames may arrive before bus_ is set. The lock makes handlers that answer at once wait for it.
void wire::start() {
  const std::lock_guard lock(mutex_);
  bus_ = std::make_shared<bus>(options_,
                               bus::events{[this](link_id link, frame from) { receive(link, std::move(from)); },
                                           [this](link_id link, const link_end& end) { tell_of_loss(link, end); }});
}

void wire::stop() {
  std::shared_ptr<bus> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(bus_);
  }
  // Wait for senders that still hold the bus: its destructor joins its thread, so it must run on neither.
  while (last.use_count() > 1) std::this_thread::yield();
  last.reset();
  // Handlers hold actor handles, and an actor with its own thread ends only when its last handle goes.
  handlers_ = {};
  lost_ = nullptr;
}

std::shared_ptr<bus> wire::running() const {
  const std::lock_guard lock(mutex_);
  return bus_;
}

link_id wire::connect(const std::string& endpoint, dialing how) {
  const auto current = running();
  return current ? current->connect(endpoint, server_key(), how) : no_link;
}

/// A while at a time, so that stop() need not wait for it.
bool wire::wait_up(link_id link, std::chrono::milliseconds longest, const std::stop_token& stop) {
  constexpr std::chrono::milliseconds at_once(100);
  for (auto left = longest; left.count() > 0 && !stop.stop_requested(); left -= at_once) {
    const auto current = running();
    if (!current) return false;
    if (current->wait_up(link, std::min(left, at_once), stop)) return true;
  }
  return false;
}

void wire::close(link_id link) {
  if (const auto current = running()) current->close(link);
}

bool wire::is_connected(link_id link) const {
  const auto current = running();
  return current && current->is_connected(link);
}

bool wire::is_client(link_id link) const {
  const auto current = running();
  return current && current->is_client(link);
}

std::string wire::endpoint() const {
  const auto current = running();
  return current ? current->endpoint() : std::string();
}

void wire::send_frame(link_id to, frame sent) {
  const auto current = running();
  if (!current) return;
  const std::string why = fault_of_sending(*current, to, std::move(sent));
  if (why.empty()) return;
  current->close(to);
  tell_of_loss(to, {why});
}

void wire::receive(link_id link, frame&& from) {
  const std::uint16_t kind = from.kind;
  if (kind < kinds && handlers_[kind] && handlers_[kind](link, std::move(from))) return;
  const char* const whose = is_client(link) ? "a client" : "a node";
  close(link);
  const std::string why =
      fmt::format("{} sent a message (kind {}) that cannot be read here: its link is closed", whose, kind);
  tell_of_loss(no_link, {why});  // for the log
  tell_of_loss(link, {why});
}

}  // namespace troupe
