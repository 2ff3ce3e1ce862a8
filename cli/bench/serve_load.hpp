// A load that is put on a server of OpenAI's API.
#pragma once
#include <cstddef>
#include <cstdint>
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

  std::vector<bench::served_request> run();
  double seconds() const;  ///< since run() began

 private:
  /// An answer that is coming in.
  struct answer_stream {
    std::string unread, refusal;
    int status = 0;
    bool done = false;
  };
  void send(std::size_t index);
  void take(bench::served_request& result, answer_stream& stream, std::string_view piece) const;
  void take_line(bench::served_request& result, answer_stream& stream, std::string_view line) const;
  void note_piece(bench::served_request& result) const;
  void end(bench::served_request& result, const answer_stream& stream, const std::string& error);

  http_client client_;
  http_headers headers_;
  std::vector<load_request> requests_;
  std::size_t clients_, next_ = 0;
  std::vector<bench::served_request> results_;
  double began_ = 0;
};

}  // namespace troupe
