// The links between the processes of a simulated cluster: the bus' promises, without sockets or threads.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "actors/wire.hpp"

namespace troupe::test {

class simulated_net;

/// One process' links.
class simulated_wire final : public wire {
 public:
  simulated_wire(simulated_net& net, std::string address)
      : wire(bus::options{}), address(std::move(address)), net_(net) {}

  link_id connect(const std::string& endpoint, dialing how) override;
  bool wait_up(link_id link, std::chrono::milliseconds longest, const std::stop_token& stop) override;
  void close(link_id link) override;
  bool is_connected(link_id link) const override;

  using wire::receive;
  using wire::tell_of_loss;

  const std::string address;
  bool is_stopped = false;  ///< as by SIGSTOP

 private:
  void send_frame(link_id to, frame sent) override;

  simulated_net& net_;
};

/// Carries frames in the order of each link, and each link at its own pace. A cut is bridged like the bus bridges it;
/// one that lasts longer ends the link.
class simulated_net {
 public:
  explicit simulated_net(std::mt19937_64& random) : random_(random) {}

  /// Links to an earlier process of this address, of those who try for ever, go on to this one.
  void listen(simulated_wire& process) {
    listening_[process.address] = &process;
    for (auto& [link, each] : lines_)
      if (each.ends[0] && !each.ends[1] && each.stays_for == process.address) each.ends[1] = &process;
  }

  link_id dial(simulated_wire& from, const std::string& address, dialing how) {
    const link_id link{++last_};
    const auto found = listening_.find(address);
    line& made = lines_[link];
    made.ends = {&from, found == listening_.end() ? nullptr : found->second};
    if (how == dialing::for_ever) made.stays_for = address;
    if (!made.ends[1] && how == dialing::until_forgotten) made.losses[0] = now_ + forget_after;
    return link;
  }

  bool reaches(link_id link) const {
    const auto found = lines_.find(link);
    if (found == lines_.end() || found->second.silent_until > now_) return false;
    const simulated_wire* there = found->second.ends[1];
    return there && !there->is_stopped;
  }

  /// Also while it is cut.
  bool is_connected(link_id link) const {
    const auto found = lines_.find(link);
    return found != lines_.end() && found->second.ends[0] && found->second.ends[1];
  }

  void send(const simulated_wire& from, link_id link, frame what) {
    if (const auto found = lines_.find(link); found != lines_.end())
      if (const auto side = side_of(found->second, from)) queue(found->second, *side, std::move(what));
  }

  /// What was sent before still arrives.
  void close(const simulated_wire& from, link_id link) {
    const auto found = lines_.find(link);
    if (found == lines_.end()) return;
    const auto side = side_of(found->second, from);
    if (!side) return;
    queue(found->second, *side, std::nullopt);
    found->second.ends[*side] = nullptr;
  }

  /// The process ends: with a word to others, or killed, so that they only find out when they give up its links.
  void remove(simulated_wire& process, bool says_so) {
    std::erase_if(listening_, [&](const auto& each) { return each.second == &process; });
    for (auto& [link, each] : lines_) {
      const auto side = side_of(each, process);
      if (!side) continue;
      if (says_so) {
        close(process, link);
        continue;
      }
      auto& sent = each.going[*side];
      sent.resize(random_() % (sent.size() + 1));
      each.ends[*side] = nullptr;
      if (*side == 0 || each.stays_for.empty()) each.losses[1 - *side] = now_ + forget_after;
    }
  }

  /// Nothing passes between the two for so long.
  void cut(const simulated_wire& a, const simulated_wire& b, duration time) {
    for (auto& [link, each] : lines_) {
      if (!side_of(each, a) || !side_of(each, b)) continue;
      each.silent_until = std::max(each.silent_until, now_ + time);
      if (time < forget_after) continue;
      each.losses[1] = now_ + forget_after;
      each.losses[0] = now_ + time;
    }
  }

  /// Delivers what is due.
  void advance(instant now) {
    now_ = now;
    for (auto& [link, each] : lines_)
      for (std::size_t side : {0, 1}) {
        deliver(link, each, side);
        if (each.losses[side] && *each.losses[side] <= now_) lose(link, each, side);
      }
    std::erase_if(lines_, [](const auto& each) { return !each.second.ends[0] && !each.second.ends[1]; });
  }

 private:
  static constexpr duration forget_after = std::chrono::seconds(10);
  struct parcel {
    instant due;
    std::optional<frame> what;  ///< none: the link was closed
  };
  struct line {  // sides: 0 has dialed, 1 was called
    std::array<simulated_wire*, 2> ends{};
    std::array<std::deque<parcel>, 2> going;  ///< from each side
    std::array<std::optional<instant>, 2> losses;
    std::string stays_for;  ///< the address, if its caller tries for ever
    instant silent_until;
  };

  static std::optional<std::size_t> side_of(const line& of, const simulated_wire& process) {
    if (of.ends[0] == &process) return 0;
    if (of.ends[1] == &process) return 1;
    return std::nullopt;
  }
  void queue(line& on, std::size_t side, std::optional<frame> what) {
    const instant sent = now_ + std::chrono::microseconds(random_() % (random_() % 16 == 0 ? 20'000 : 2'000));
    auto& going = on.going[side];
    going.push_back({going.empty() ? sent : std::max(sent, going.back().due), std::move(what)});
  }
  void deliver(link_id link, line& on, std::size_t side) {
    auto& going = on.going[side];
    while (!going.empty() && going.front().due <= now_ && on.silent_until <= now_) {
      simulated_wire* const to = on.ends[1 - side];
      if (!to && side == 0 && !on.stays_for.empty()) return;  // whoever comes next gets it
      parcel next = std::move(going.front());
      going.pop_front();
      if (!to) continue;
      if (!next.what) return lose(link, on, 1 - side);
      to->receive(link, std::move(*next.what));
    }
  }
  static void lose(link_id link, line& on, std::size_t side) {
    on.losses[side].reset();
    simulated_wire* const told = std::exchange(on.ends[side], nullptr);
    if (told) told->tell_of_loss(link, {"the link ended", false, true});
  }

  std::mt19937_64& random_;
  std::map<std::string, simulated_wire*> listening_;
  std::map<link_id, line> lines_;
  std::uint64_t last_ = 0;
  instant now_;
};

inline link_id simulated_wire::connect(const std::string& endpoint, dialing how) {
  return net_.dial(*this, endpoint, how);
}
inline bool simulated_wire::wait_up(link_id link, std::chrono::milliseconds, const std::stop_token&) {
  return net_.reaches(link);
}
inline bool simulated_wire::is_connected(link_id link) const {
  return net_.is_connected(link);
}
inline void simulated_wire::close(link_id link) {
  net_.close(*this, link);
}
inline void simulated_wire::send_frame(link_id to, frame sent) {
  net_.send(*this, to, std::move(sent));
}

}  // namespace troupe::test
