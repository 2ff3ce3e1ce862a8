#include "transport/collective/meeting.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
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

/// Everyone's words, as rank 0 tells them; nothing if it is not there or has no time for this group.
std::optional<std::vector<std::string>> try_to_visit_rank_0(const rank_group& group, const std::string& own_word,
                                                            moment deadline) {
  file_descriptor socket = connect_to(group.place, deadline, group.stop);
  if (!socket.is_open()) return {};
  connection to(std::move(socket), deadline, group.stop);
  if (!to.send_number(magic) || !to.send_text(group.name) || !to.send_number(static_cast<std::uint32_t>(group.rank)) ||
      !to.send_text(own_word))
    return {};
  std::vector<std::string> words;
  for (int rank = 0; rank < group.size; ++rank) {
    auto word = to.receive_text(meeting_place::longest_word);
    if (!word) return {};
    words.push_back(std::move(*word));
  }
  return words;
}

std::vector<std::string> visit_rank_0(const rank_group& group, const std::string& own_word) {
  const moment deadline = std::chrono::steady_clock::now() + group.patience;
  while (!group.stop.stop_requested() && std::chrono::steady_clock::now() < deadline) {
    if (auto words = try_to_visit_rank_0(group, own_word, deadline)) return std::move(*words);
    std::this_thread::sleep_for(between_tries);
  }
  throw collective_failure(fmt::format("rank 0 of {} is not at {}", group.size, group.place));
}

}  // namespace

meeting_place::meeting_place(const std::string& name) {
  auto addresses = addresses_of(name, "0", AI_PASSIVE | AI_NUMERICSERV);
  if (addresses.empty()) refuse("{}: cannot be looked up: name an address of this machine", name);
  // On many machines their own name is a loopback first, where no other machine comes.
  std::stable_partition(addresses.begin(), addresses.end(), [](const auto& each) { return !each.is_loopback(); });
  const auto found =
      std::find_if(addresses.begin(), addresses.end(), [this](const auto& each) { return listen(each); });
  if (found == addresses.end())
    refuse("{}: ranks cannot meet there ({}): name an address of this machine", name, std::strerror(errno));
  socket_address bound;
  bound.length = sizeof bound.bytes;
  std::array<char, INET6_ADDRSTRLEN + 16> host{};  // and a zone
  std::array<char, 8> port{};
  auto* const to = reinterpret_cast<sockaddr*>(&bound.bytes);
  if (::getsockname(listener_.number(), to, &bound.length) != 0 ||
      ::getnameinfo(to, bound.length, host.data(), host.size(), port.data(), port.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    refuse("{}: ranks cannot meet there: name another address of this machine", name);
  host_ = host.data();
  endpoint_ = fmt::format("{}:{}", name, port.data());
}

bool meeting_place::listen(const socket_address& at) {
  listener_ = file_descriptor(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return listener_.is_open() && ::bind(listener_.number(), at.get(), at.length) == 0 &&
         ::listen(listener_.number(), 64) == 0;
}

std::vector<std::string> meeting_place::exchange_words(const rank_group& group, std::string own_word) {
  if (own_word.size() > longest_word || group.name.size() > longest_group_name || group.size < 1 || group.rank < 0 ||
      group.rank >= group.size)
    refuse("rank {} of {} cannot meet the others in {}", group.rank, group.size, group.name);
  return group.rank == 0 ? await_visitors(group, std::move(own_word)) : visit_rank_0(group, own_word);
}

std::vector<std::string> meeting_place::await_visitors(const rank_group& group, std::string own_word) const {
  const moment deadline = std::chrono::steady_clock::now() + group.patience;
  std::vector<std::string> words(to_size(group.size));
  std::vector<std::optional<connection>> connections(words.size());
  words.front() = std::move(own_word);
  const auto missing = [&] {
    return std::find(connections.begin() + 1, connections.end(), std::nullopt) - connections.begin();
  };
  while (missing() < group.size) {
    const bool is_late = std::chrono::steady_clock::now() >= deadline;
    if (is_late || !is_ready(listener_.number(), POLLIN, deadline, group.stop))
      throw collective_failure(fmt::format("rank {} of {} did not come to {}", missing(), group.size, endpoint_));
    auto came = accept_visitor(listener_.number(), group, deadline);
    if (!came) continue;
    const auto rank = to_size(came->rank);
    words[rank] = std::move(came->word);
    connections[rank].emplace(std::move(came->to));
  }
  for (std::size_t rank = 1; rank < connections.size(); ++rank)
    for (const std::string& word : words)
      if (!connections[rank]->send_text(word))
        throw collective_failure(fmt::format("rank {} of {} went away", rank, group.size));
  return words;
}

}  // namespace troupe
