// A load that is put on a server of OpenAI's API.
#pragma once
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/serve_figures.hpp"
#include "transport/http/http_client.hpp"

namespace troupe {

/// A completion to ask for.
struct load_request {
  double at = 0;  ///< seconds from the load's beginning
  std::int64_t prompt_tokens = 0;
  std::string body;
};

/// Sends the requests and notes what comes back, and when.
class serve_load {
 public:
  /// With `clients`, a request is sent whenever fewer than that many are under way; otherwise at its own time.
  serve_load(http_url server, http_headers headers, std::vector<load_request> requests, std::size_t clients);

  /// What came of all requests that were sent. An interrupt ends the load: those under way have failed then, and no
  /// other is sent. The caller has an interrupt_guard.
  std::vector<bench::served_request> run();
  double seconds() const;  ///< since run() began

 private:
  /// An answer that is coming in.
  struct answer_stream {
    std::string unread, refusal;
    int status = 0;
    bool done = false;
    std::int64_t pieces = 0;  ///< that have text: the last chunk of many servers only says why the answer ends
  };
  void watch_for_interrupts();
  void send(std::size_t index);
  void take(bench::served_request& result, answer_stream& stream, std::string_view piece) const;
  void take_line(bench::served_request& result, answer_stream& stream, std::string_view line) const;
  void note_piece(bench::served_request& result) const;
  void end(bench::served_request& result, const answer_stream& stream, const std::string& error);

  http_client client_;
  http_headers headers_;
  std::vector<load_request> requests_;
  std::size_t clients_, next_ = 0;
  std::vector<bench::served_request> results_;  ///< in the order of sending; requests under way point into it
  std::set<bench::served_request*> under_way_;
  std::size_t ended_ = 0;
  double began_ = 0;
};

}  // namespace troupe
