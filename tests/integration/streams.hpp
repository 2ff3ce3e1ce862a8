// Many requests of one client at the same time, and every token that came for them; and single questions.
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
#include "actors/wire.hpp"
#include "transport/zmq/bus.hpp"

namespace troupe::test {

class streams {
 public:
  explicit streams(const std::string& endpoint, const std::optional<curve_keys>& keys = {});

  /// Returns the request's id.
  std::uint64_t begin(client_request request);
  void cancel(std::uint64_t id);

  /// Whether all answers end, or are refused, within that time.
  bool finish(std::chrono::seconds longest);
  bool finished() const;
  std::size_t tokens() const;  ///< of all answers so far
  std::size_t tokens_of(std::uint64_t id) const;
  std::vector<token_id> answer(std::uint64_t id, std::int32_t index = 0) const;
  /// The version that gave an answer which has ended; empty: the bare base.
  std::string version_of(std::uint64_t id, std::int32_t index = 0) const;
  /// Everything that went wrong, a line each: refusals, tokens after an end.
  std::vector<std::string> faults() const;
  /// The longest time in which nothing came although something was expected.
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

/// What comes back for one message, over a link of its own; empty if nothing has after `longest`.
template <message Answer, message Question>
std::optional<Answer> ask(const std::string& endpoint, const std::optional<curve_keys>& keys, Question question,
                          std::chrono::seconds longest) {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Answer> answer;
  bool ended = false;
  bus::options options;
  options.keys = keys;
  bus own(options, {[&](link_id, frame got) {
                      if (got.kind != Answer::kind) return;
                      const std::lock_guard lock(mutex);
                      answer = from_frame<Answer>(std::move(got));
                      changed.notify_all();
                    },
                    [&](link_id, const link_end&) {
                      const std::lock_guard lock(mutex);
                      ended = true;
                      changed.notify_all();
                    }});
  const link_id link = own.connect(endpoint, keys ? keys->cluster_public_key : std::string());
  own.send(link, to_frame(std::move(question)));
  {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, longest, [&] { return answer || ended; });
  }
  own.close(link);  // nobody hears the question later
  const std::lock_guard lock(mutex);
  return answer;
}

}  // namespace troupe::test
