#include "transport/collective/meeting.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/timed_socket.hpp"
#include "base/to_size.hpp"
#include "transport/collective/collective.hpp"

namespace troupe {
namespace {

using moment = timed_socket::moment;
constexpr std::uint32_t magic = 0x31524b54;  // TKR1
constexpr std::size_t longest_group_name = 256;
constexpr std::chrono::milliseconds greeting_time{1000}, connecting_time{3000}, between_tries{20};

/// Sends and receives whole values: false, or nothing, where one does not pass before the deadline.
class connection : public timed_socket {
 public:
  using timed_socket::timed_socket;

  bool send_number(std::uint32_t number) { return send({reinterpret_cast<const char*>(&number), sizeof number}); }
  bool send_text(std::string_view text) { return send_number(static_cast<std::uint32_t>(text.size())) && send(text); }

  std::optional<std::uint32_t> receive_number() {
    std::uint32_t number = 0;
    if (!receive(reinterpret_cast<char*>(&number), sizeof number)) return {};
    return number;
  }
  std::optional<std::string> receive_text(std::size_t longest) {
    const auto size = receive_number();
    if (!size || *size > longest) return {};
    std::string text(*size, '\0');
    if (!receive(text.data(), text.size())) return {};
    return text;
  }
};

/// Another rank of the group, which has come to rank 0.
struct visitor {
  int rank = 0;
  std::string word;
  connection to;
};

/// Nothing where whoever connected is none of the group.
std::optional<visitor> accept_visitor(int listener, const rank_group& group, moment deadline) {
  file_descriptor socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.is_open()) {  // no file may be left at the moment
    std::this_thread::sleep_for(between_tries);
    return {};
  }
  const moment soon = std::min(deadline, std::chrono::steady_clock::now() + greeting_time);
  connection to(std::move(socket), soon, group.stop);
  if (to.receive_number() != magic) return {};
  const auto name = to.receive_text(longest_group_name);
  const auto rank = to.receive_number();
  if (!name || !rank) return {};
  auto word = to.receive_text(meeting_place::longest_word);
  if (!word || *name != group.name || *rank < 1 || *rank >= static_cast<std::uint32_t>(group.size)) return {};
  to.allow_until(deadline);
  return visitor{static_cast<int>(*rank), std::move(*word), std::move(to)};
}

/// At the first address of the place where somebody listens; not open if there is none, or nobody knows the host now.
file_descriptor connect_to(const std::string& place, moment deadline, const std::stop_token& stop) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return {};
  for (const auto& each : addresses_of(place.substr(0, colon), place.substr(colon + 1), AI_NUMERICSERV)) {
    const moment soon = std::min(deadline, std::chrono::steady_clock::now() + connecting_time);
    if (auto socket = connected_to(each, soon, stop); socket.is_open()) return socket;
  }
  return {};
}

/// Of all ranks but rank 0, in their order.
using visitors = std::vector<std::optional<visitor>>;

/// `place`: as it is called if somebody does not come.
visitors await_visitors(int listener, const rank_group& group, const std::string& place) {
  const moment deadline = std::chrono::steady_clock::now() + group.patience;
  visitors came(to_size(group.size - 1));
  const auto missing = [&] { return std::find(came.begin(), came.end(), std::nullopt) - came.begin() + 1; };
  while (missing() < group.size) {
    const bool is_late = std::chrono::steady_clock::now() >= deadline;
    if (is_late || !is_ready(listener, POLLIN, deadline, group.stop))
      throw collective_failure(fmt::format("rank {} of {} did not come to {}", missing(), group.size, place),
                               static_cast<int>(missing()));
    if (auto next = accept_visitor(listener, group, deadline)) came[to_size(next->rank - 1)] = std::move(next);
  }
  return came;
}

void tell_all(visitors& came, const std::vector<std::string>& words) {
  for (auto& each : came)
    for (const std::string& word : words)
      if (!each->to.send_text(word))
        throw collective_failure(fmt::format("rank {} of {} went away", each->rank, words.size()), each->rank);
}

/// The address by which visitors from other machines have found rank 0, if there are any.
std::string host_found_by(const visitors& came) {
  std::string host;
  for (const auto& each : came)
    if (const auto at = each->to.local_address(); host.empty() || !at.is_loopback()) host = at.in_numbers().host;
  return host;
}

/// What a visit to rank 0 brought.
struct visit {
  std::vector<std::string> words;  ///< everyone's
  std::string own_host;            ///< where this machine is for rank 0
};

/// Nothing if rank 0 is not there or has no time for this group.
std::optional<visit> try_to_visit_rank_0(const rank_group& group, const std::string& own_word, moment deadline) {
  file_descriptor socket = connect_to(group.place, deadline, group.stop);
  if (!socket.is_open()) return {};
  connection to(std::move(socket), deadline, group.stop);
  if (!to.send_number(magic) || !to.send_text(group.name) || !to.send_number(static_cast<std::uint32_t>(group.rank)) ||
      !to.send_text(own_word))
    return {};
  visit made{{}, to.local_address().in_numbers().host};
  for (int rank = 0; rank < group.size; ++rank) {
    auto word = to.receive_text(meeting_place::longest_word);
    if (!word) return {};
    made.words.push_back(std::move(*word));
  }
  return made;
}

/// Longer than rank 0 waits for others: it knows who is missing, and says so first.
visit visit_rank_0(const rank_group& group, const std::string& own_word) {
  const moment deadline = std::chrono::steady_clock::now() + group.patience * 5 / 4;
  while (!group.stop.stop_requested() && std::chrono::steady_clock::now() < deadline) {
    if (auto made = try_to_visit_rank_0(group, own_word, deadline)) return std::move(*made);
    std::this_thread::sleep_for(between_tries);
  }
  throw collective_failure(fmt::format("rank 0 of {} is not at {}", group.size, group.place), 0);
}

void check(const rank_group& group, const std::string& own_word) {
  if (own_word.size() > meeting_place::longest_word || group.name.size() > longest_group_name || group.size < 1 ||
      group.rank < 0 || group.rank >= group.size)
    refuse("rank {} of {} cannot meet the others in {}", group.rank, group.size, group.name);
}

/// Where to listen for those who know this machine by that name.
std::vector<socket_address> places_of(const std::string& name) {
  const auto is_loopback = [](const socket_address& each) { return each.is_loopback(); };
  auto addresses = addresses_of(name, "0", AI_PASSIVE | AI_NUMERICSERV);
  const auto loopbacks = std::stable_partition(addresses.begin(), addresses.end(), std::not_fn(is_loopback));
  if (addresses.empty() || loopbacks != addresses.begin() || is_loopback_host(name)) return addresses;
  // Many machines call themselves by a loopback (127.0.1.1), where no other machine comes: others know the address.
  auto all = addresses_of("", "0", AI_PASSIVE | AI_NUMERICSERV);
  // The one of IPv6 is for both kinds.
  std::stable_partition(all.begin(), all.end(), [](const auto& each) { return each.family() == AF_INET6; });
  return all;
}

}  // namespace

meeting_place::meeting_place(const std::string& name) {
  const auto places = places_of(name);
  if (places.empty()) refuse("{}: cannot be looked up: name an address of this machine", name);
  if (std::none_of(places.begin(), places.end(), [this](const auto& each) { return listen(each); }))
    refuse("{}: ranks cannot meet there ({}): name an address of this machine", name, std::strerror(errno));
  const host_port bound = local_address_of(listener_.number()).in_numbers();
  host_ = bound.host;
  endpoint_ = fmt::format("{}:{}", name, bound.port);
}

bool meeting_place::listen(const socket_address& at) {
  listener_ = file_descriptor(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.is_open()) return false;
  const int no = 0;
  ::setsockopt(listener_.number(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);  // fails for IPv4, which has no such
  return ::bind(listener_.number(), at.get(), at.length) == 0 && ::listen(listener_.number(), 64) == 0;
}

std::vector<std::string> meeting_place::exchange_words(const rank_group& group, std::string own_word) const {
  check(group, own_word);
  if (group.rank != 0) return visit_rank_0(group, own_word).words;
  visitors came = await_visitors(listener_.number(), group, called());
  std::vector<std::string> words{std::move(own_word)};
  for (auto& each : came) words.push_back(std::move(each->word));
  tell_all(came, words);
  return words;
}

// A rank on rank 0's machine may come to it by a loopback; its address for others is then rank 0's.
std::string meeting_place::host_among(rank_group group) const {
  group.name += ".hosts";
  check(group, {});
  if (group.rank == 0) {
    visitors came = await_visitors(listener_.number(), group, called());
    const std::string host = is_everywhere() && !came.empty() ? host_found_by(came) : host_;
    tell_all(came, std::vector(to_size(group.size), host));
    return host;
  }
  const visit made = visit_rank_0(group, {});
  if (!is_everywhere()) return host_;
  return is_loopback_host(made.own_host) ? made.words.front() : made.own_host;
}

std::string meeting_place::called() const {
  if (endpoint_.starts_with(host_)) return endpoint_;
  return fmt::format("{} (here {})", endpoint_, is_everywhere() ? "every address" : host_);
}

}  // namespace troupe
