#include "transport/collective/meeting.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "transport/collective/collective.hpp"

namespace troupe {
namespace {

using moment = std::chrono::steady_clock::time_point;
constexpr std::uint32_t magic = 0x31524b54;  // TKR1
constexpr std::size_t longest_group = 256;
constexpr std::chrono::milliseconds for_one_guest{1000}, between_tries{20};

class open_socket {
 public:
  explicit open_socket(int descriptor = -1) : descriptor_(descriptor) {}
  ~open_socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  open_socket(open_socket&& from) noexcept : descriptor_(std::exchange(from.descriptor_, -1)) {}
  open_socket& operator=(open_socket&& from) noexcept {
    std::swap(descriptor_, from.descriptor_);
    return *this;
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// Waits in short pieces, so that a stop is seen.
bool is_ready(int descriptor, short events, moment deadline, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd asked{descriptor, events, 0};
    if (::poll(&asked, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 50))) > 0) return true;
    if (left.count() <= 0) return false;
  }
  return false;
}

/// One connection: whole pieces, or nothing.
class talk {
 public:
  talk(open_socket with, moment deadline, std::stop_token stop)
      : with_(std::move(with)), deadline_(deadline), stop_(std::move(stop)) {}

  bool say(std::string_view bytes) {
    while (!bytes.empty()) {
      if (!is_ready(with_.get(), POLLOUT, deadline_, stop_)) return false;
      const ssize_t sent = ::send(with_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool say_number(std::uint32_t number) { return say({reinterpret_cast<const char*>(&number), sizeof number}); }
  bool say_text(std::string_view text) { return say_number(static_cast<std::uint32_t>(text.size())) && say(text); }

  bool hear(char* to, std::size_t bytes) {
    while (bytes > 0) {
      if (!is_ready(with_.get(), POLLIN, deadline_, stop_)) return false;
      const ssize_t got = ::recv(with_.get(), to, bytes, MSG_DONTWAIT);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
      if (got > 0) {
        to += got;
        bytes -= static_cast<std::size_t>(got);
      }
    }
    return true;
  }
  std::optional<std::uint32_t> hear_number() {
    std::uint32_t number = 0;
    if (!hear(reinterpret_cast<char*>(&number), sizeof number)) return {};
    return number;
  }
  std::optional<std::string> hear_text(std::size_t longest) {
    const auto size = hear_number();
    if (!size || *size > longest) return {};
    std::string text(*size, '\0');
    if (!hear(text.data(), text.size())) return {};
    return text;
  }
  void allow_until(moment deadline) { deadline_ = deadline; }

 private:
  open_socket with_;
  moment deadline_;
  std::stop_token stop_;
};

struct address_list {
  addrinfo* first = nullptr;
  ~address_list() {
    if (first) ::freeaddrinfo(first);
  }
};

void look_up(const std::string& host, const std::string& port, int flags, address_list& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  if (const int code = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found.first); code != 0)
    refuse("{}: cannot be looked up ({}): name an address of this machine", host, ::gai_strerror(code));
}

/// A connection that is not yet known to be of the group. There are at most a few.
struct guest {
  int rank = 0;
  std::string word;
  talk with;
};

std::optional<guest> welcome(int listener, const meeting& of, moment deadline) {
  open_socket connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.get() < 0) return {};
  const moment soon = std::min(deadline, std::chrono::steady_clock::now() + for_one_guest);
  talk with(std::move(connection), soon, of.stop);
  if (with.hear_number() != magic) return {};
  const auto group = with.hear_text(longest_group);
  const auto rank = with.hear_number();
  if (!group || !rank) return {};
  auto word = with.hear_text(meeting_place::longest_word);
  if (!word || *group != of.group || *rank < 1 || *rank >= static_cast<std::uint32_t>(of.size)) return {};
  with.allow_until(deadline);
  return guest{static_cast<int>(*rank), std::move(*word), std::move(with)};
}

open_socket dial(const std::string& place, moment deadline, const std::stop_token& stop) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) refuse("'{}' is no meeting place: it is written host:port", place);
  address_list found;
  look_up(place.substr(0, colon), place.substr(colon + 1), AI_NUMERICSERV, found);
  open_socket made(::socket(found.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int fault = 0;
  socklen_t size = sizeof fault;
  const bool begun = ::connect(made.get(), found.first->ai_addr, found.first->ai_addrlen) == 0 || errno == EINPROGRESS;
  const bool done = begun && is_ready(made.get(), POLLOUT, deadline, stop) &&
                    ::getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &fault, &size) == 0 && fault == 0;
  return done ? std::move(made) : open_socket();
}

std::optional<std::vector<std::string>> visit(const meeting& of, const std::string& own, moment deadline) {
  open_socket connection = dial(of.place, deadline, of.stop);
  if (connection.get() < 0) return {};
  talk with(std::move(connection), deadline, of.stop);
  if (!with.say_number(magic) || !with.say_text(of.group) || !with.say_number(static_cast<std::uint32_t>(of.rank)) ||
      !with.say_text(own))
    return {};
  std::vector<std::string> words;
  for (int rank = 0; rank < of.size; ++rank) {
    auto word = with.hear_text(meeting_place::longest_word);
    if (!word) return {};
    words.push_back(std::move(*word));
  }
  return words;
}

/// Tries until rank 0 is there and has time for this group.
std::vector<std::string> attend(const meeting& of, const std::string& own) {
  const moment deadline = std::chrono::steady_clock::now() + of.patience;
  while (!of.stop.stop_requested() && std::chrono::steady_clock::now() < deadline) {
    if (auto words = visit(of, own, deadline)) return std::move(*words);
    std::this_thread::sleep_for(between_tries);
  }
  throw collective_failure(0, fmt::format("rank 0 of {} is not at {}", of.size, of.place));
}

}  // namespace

meeting_place::meeting_place(std::string host) : host_(std::move(host)) {
  address_list found;
  look_up(host_, "0", AI_PASSIVE | AI_NUMERICSERV, found);
  listener_ = ::socket(found.first->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  char port[16] = {};
  if (listener_ < 0 || ::bind(listener_, found.first->ai_addr, found.first->ai_addrlen) != 0 ||
      ::listen(listener_, 64) != 0 || ::getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, nullptr, 0, port, sizeof port, NI_NUMERICSERV) != 0) {
    const std::string why = std::strerror(errno);
    if (listener_ >= 0) ::close(listener_);
    refuse("{}: ranks cannot meet there ({}): name an address of this machine", host_, why);
  }
  endpoint_ = fmt::format("{}:{}", host_, port);
}

meeting_place::~meeting_place() {
  ::close(listener_);
}

std::vector<std::string> meeting_place::exchange_words(const meeting& of, std::string own) {
  if (own.size() > longest_word || of.group.size() > longest_group || of.size < 1 || of.rank < 0 || of.rank >= of.size)
    refuse("rank {} of {} cannot meet the others in {}", of.rank, of.size, of.group);
  return of.rank == 0 ? hold(of, std::move(own)) : attend(of, own);
}

std::vector<std::string> meeting_place::hold(const meeting& of, std::string own) const {
  const moment deadline = std::chrono::steady_clock::now() + of.patience;
  std::vector<std::string> words(static_cast<std::size_t>(of.size));
  std::vector<std::optional<talk>> talks(words.size());
  words.front() = std::move(own);
  const auto missing = [&] { return std::find(talks.begin() + 1, talks.end(), std::nullopt) - talks.begin(); };
  while (missing() < of.size) {
    if (!is_ready(listener_, POLLIN, deadline, of.stop))
      throw collective_failure(static_cast<int>(missing()),
                               fmt::format("rank {} of {} did not come to {}", missing(), of.size, endpoint_));
    auto came = welcome(listener_, of, deadline);
    if (!came) continue;
    const auto at = static_cast<std::size_t>(came->rank);
    words[at] = std::move(came->word);
    talks[at].emplace(std::move(came->with));
  }
  for (std::size_t rank = 1; rank < talks.size(); ++rank)
    for (const std::string& word : words)
      if (!talks[rank]->say_text(word))
        throw collective_failure(static_cast<int>(rank), fmt::format("rank {} of {} went away", rank, of.size));
  return words;
}

}  // namespace troupe
