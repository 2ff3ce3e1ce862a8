// The gateway: takes requests and gives their answers as text, for all callers: clients on the wire, HTTP, batch jobs.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/adapters/adapter_directory.hpp"
#include "actors/interfaces.hpp"
#include "actors/requests/prompting.hpp"
#include "actors/status_board.hpp"
#include "model/engine/sampling/stop_matcher.hpp"

namespace troupe {

struct gateway_parts {
  router_actor router;
  adapter_store_actor store;
  std::shared_ptr<const prompting> prompts;
  std::shared_ptr<const adapter_directory> adapters;
  std::shared_ptr<status_board> board;
  std::size_t max_waiting = 4096;                      ///< requests that wait for an adapter to be found
  duration longest_wait = std::chrono::seconds(30);    ///< of such a request
  duration report_interval = std::chrono::seconds(1);  ///< between figures on the board
};

/// The sink of all its requests: turns tokens into text, ends answers at stop strings, tells listeners. Knows no
/// protocol.
class gateway_state {
 public:
  using handle = gateway_actor;
  static constexpr const char* name = "gateway";

  gateway_state(handle::pointer self, gateway_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct answer_text {
    stream_decoder decoder;
    stop_matcher stops;
    std::uint64_t tokens = 0;
    bool begun = false, ended = false;
  };
  struct running {
    std::shared_ptr<answer_listener> listener;
    std::int64_t prompt_tokens = 0;
    std::string adapter;
    std::shared_ptr<const void> hold;  ///< keeps the files of the adapter's version
    std::uint64_t skip_tokens = 0, min_tokens = 0;
    std::vector<token_id> stop_tokens;  ///< those that are no end tokens of the model
    std::vector<answer_text> answers;
    std::size_t left = 0;  ///< answers that have not ended
  };
  struct waiting {
    begin_request request;
    instant until;
  };

  std::optional<adapter_version> version_for(const begin_request& request) const;
  void begin(begin_request& request);
  void start(begin_request& request, adapter_version version);
  void wait_for_adapter(begin_request& request);
  void take_found(const adapter_found& found);
  void end_overdue();
  void end(request_id id);
  void take_tokens(answer_tokens& brought);
  answer_part read_tokens(running& request, answer_text& answer, answer_tokens& brought);
  void take_refusal(const request_refused& refused);
  void refuse_start(const begin_request& request, std::string error, refusal_cause cause,
                    duration retry_after = std::chrono::seconds(1));
  void refuse_adapter(const begin_request& request, std::string error, bool is_unknown);
  void stop();
  void report_soon();
  void report();

  handle::pointer self_;
  gateway_parts parts_;
  actor_clock clock_{self_};

  std::unordered_map<request_id, running> running_;
  std::unordered_map<std::string, std::deque<waiting>> waiting_;  ///< by the adapter's name
  std::size_t waiting_count_ = 0;
  std::uint64_t requests_ = 0, prompt_tokens_ = 0, answer_tokens_ = 0, refused_ = 0, cancelled_ = 0;
  bool report_due_ = false;
};

gateway_actor spawn_gateway(caf::actor_system& system, gateway_parts parts);

}  // namespace troupe
