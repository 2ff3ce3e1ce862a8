// Many requests of one client at once, and every token that came for them.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe::test {

class streams {
 public:
  explicit streams(const std::string& endpoint, const std::optional<curve_keys>& keys = {});

  /// The id it is known by.
  std::uint64_t begin(client_request request);
  void cancel(std::uint64_t id);

  /// Whether every answer that was begun has ended, or was refused, within so long.
  bool finish(std::chrono::seconds longest);
  bool finished() const;
  std::size_t tokens() const;  ///< of all answers so far
  std::size_t tokens_of(std::uint64_t id) const;
  std::vector<token_id> answer(std::uint64_t id, std::int32_t index = 0) const;
  /// The version that answered, once it has ended; empty: the bare base.
  std::string version_of(std::uint64_t id, std::int32_t index = 0) const;
  /// What went wrong, one line each: refusals, tokens after an end.
  std::vector<std::string> faults() const;
  /// The longest time in which nothing came while something was awaited.
  std::chrono::milliseconds longest_silence() const;

 private:
  struct state {
    std::vector<token_id> tokens;
    bool ended = false;
    std::string version;
  };
  void take(frame from);
  void take_text(const client_text& text);
  void note_time();

  mutable std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::int32_t>, state> answers_;
  std::vector<std::string> faults_;
  std::chrono::steady_clock::time_point heard_{};
  std::chrono::milliseconds silence_{};
  std::uint64_t last_id_ = 0;
  link_id link_ = no_link;
  std::unique_ptr<bus> bus_;
};

}  // namespace troupe::test
