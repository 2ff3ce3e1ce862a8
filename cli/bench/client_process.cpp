#include "cli/bench/client_process.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/to_size.hpp"
#include "bench/percentiles.hpp"
#include "cluster/launch/launch_process.hpp"
#include "transport/http/http_client.hpp"

namespace troupe {
namespace {

class stream_clients {
 public:
  stream_clients(std::uint16_t port, int streams)
      : client_(parse_http_url(fmt::format("http://127.0.0.1:{}", port))), seen_(to_size(streams)) {}

  client_figures run() {
    for (seen_stream& stream : seen_)
      client_.send("POST", "/v1/completions", {{"content-type", "application/json"}},
                   R"({"prompt":"a","stream":true,"max_tokens":4000})",
                   {[](int, const http_headers&) {}, [&](std::string_view piece) { take(stream, piece); },
                    [&](const std::string& error) { broken_ += !error.empty(); }});
    client_.run();
    return {.delay_p50 = bench::percentile(delays_, 0.5),
            .delay_p99 = bench::percentile(delays_, 0.99),
            .grown_p99 = bench::percentile(grown_, 0.99),
            .tokens = static_cast<double>(delays_.size()),
            .broken = static_cast<double>(broken_)};
  }

 private:
  struct seen_stream {
    std::string held;
    double last = -1;  ///< delay of the token before
  };

  void take(seen_stream& stream, std::string_view piece) {
    stream.held += piece;
    for (std::size_t end; (end = stream.held.find("\n\n")) != std::string::npos; stream.held.erase(0, end + 2)) {
      constexpr std::string_view before = "\"text\":\"";
      const std::size_t at = stream.held.find(before);
      std::int64_t sent = 0;
      if (at >= end) continue;
      std::from_chars(stream.held.data() + at + before.size(), stream.held.data() + end, sent);
      if (sent > 0) note(stream, static_cast<double>(now_ns() - sent) * 1e-6);
    }
  }
  void note(seen_stream& stream, double delay) {
    delays_.push_back(delay);
    if (stream.last >= 0) grown_.push_back(delay - stream.last);
    stream.last = delay;
  }

  http_client client_;
  std::vector<seen_stream> seen_;
  std::vector<double> delays_, grown_;
  int broken_ = 0;
};

int run_clients(int streams, int port_from, int figures_to) {
  std::uint16_t port = 0;
  if (::read(port_from, &port, sizeof port) != sizeof port) return 1;
  const client_figures figures = stream_clients(port, streams).run();
  return ::write(figures_to, &figures, sizeof figures) == sizeof figures ? 0 : 1;
}

}  // namespace

client_process::client_process(int streams) {
  auto [port_from, port_to] = detail::open_pipe();
  auto [figures_from, figures_to] = detail::open_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("no process can be started");
  if (pid_ == 0) {
    port_to.close();  // held here, it would keep this process waiting for ever where its parent ends early
    ::_exit(run_clients(streams, port_from.number(), figures_to.number()));
  }
  port_to_ = std::move(port_to);
  figures_from_ = std::move(figures_from);
}

void client_process::begin(std::uint16_t port) const {
  if (::write(port_to_.number(), &port, sizeof port) != sizeof port) throw std::runtime_error("the client is gone");
}

client_figures client_process::figures() const {
  client_figures figures;
  if (::read(figures_from_.number(), &figures, sizeof figures) != sizeof figures) figures = {};
  ::waitpid(pid_, nullptr, 0);
  return figures;
}

}  // namespace troupe
