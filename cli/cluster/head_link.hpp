// A client's link to a cluster's head: it finds out when another head has come, connects again where the head has given
// the link up, and ends the wait for one that says nothing.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "actors/messages.hpp"
#include "cli/cluster/connect_options.hpp"
#include "cli/cluster/head_silence.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe {

/// Belongs to one thread; the bus' own thread only brings it frames.
class head_link {
 public:
  /// Throws a runtime_error where nobody answers within three seconds. `check` is called while it waits, now and later,
  /// and throws to end that.
  head_link(const connect_options& options, std::function<void()> check);

  void send(frame made, std::uint64_t correlation = 0);

  const std::string& flags() const { return flags_; }
  std::uint64_t next_number() { return ++last_number_; }
  /// Changes when another head answers, or the same one over a new link. What was sent before may be lost.
  std::uint64_t head() const { return head_; }

  /// What comes back for this number. `ask_again` is called when another head has come, which may not know of it.
  frame answer_to(std::uint64_t number, std::uint16_t kind, const std::function<void()>& ask_again);
  /// The next frame that is no hello; nothing after a while without one. Looks after the connection meanwhile.
  std::optional<frame> next();

 private:
  void keep(frame from);
  void lose(const link_end& end);
  std::optional<frame> take(duration longest);
  void connect_again(const link_end& end);
  void meet();
  void say_hello();
  void take_hello(const std::optional<command_answer>& answer);
  void look_after();

  const std::function<void()> check_;
  std::string endpoint_, server_key_;
  const std::string flags_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<frame> frames_;
  std::optional<link_end> lost_;
  std::unique_ptr<bus> bus_;
  link_id link_ = no_link;
  std::string instance_;
  std::uint64_t last_number_ = 0, hello_number_ = 0, head_ = 0;
  std::chrono::steady_clock::time_point hello_at_{};
  head_silence silence_;
  bool has_key_ = false;
  bool is_new_link_ = false;  ///< and nothing but a hello was answered on it
};

}  // namespace troupe
