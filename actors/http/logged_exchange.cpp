#include "actors/http/logged_exchange.hpp"

#include <atomic>
#include <mutex>

#include <fmt/format.h>

#include "actors/http/forwarding_exchange.hpp"
#include "base/utf8.hpp"

namespace troupe {
namespace {

constexpr std::size_t longest_logged = 4096, longest_reason = 512, longest_method = 16, longest_path = 128;

/// For the log and the counts, as proxies have it: there is nobody to read an answer.
constexpr int client_gone = 499;

/// Whether the server is at fault. Its reasons quote nothing of a request; those of other refusals may.
bool is_servers_reason(int status) {
  return status == 429 || status >= 500;
}

/// Whether a request is at fault. So it is where it has a form that the server does not read.
bool is_requests_fault(int status) {
  return (status >= 400 && status < 500) || status == 501 || status == 505;
}

/// As it was sent, so that it is one word. Clients may send bytes that belong into no address: these are encoded here.
std::string path_in(const http_request& request) {
  std::string path;
  for (const char c : request.target) {
    const bool is_plain = c > 0x20 && c < 0x7f;
    const std::string written = is_plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
    if (path.size() + written.size() > longest_path) break;
    path += written;
  }
  return path;
}

/// What has not come before a request was refused looks like that.
std::string word(const std::string& text) {
  return text.empty() ? "-" : text;
}

/// Writes the outcome of a request into the log when the exchange is gone.
class logged_exchange final : public forwarding_exchange {
 public:
  logged_exchange(std::shared_ptr<http_exchange> to, std::shared_ptr<api_context> context, const http_request& request)
      : forwarding_exchange(std::move(to)),
        context_(std::move(context)),
        request_line_(request.client + " " + word(request.method.substr(0, longest_method)) + " " +
                      word(path_in(request))),
        body_(context_->log_bodies ? request.body.substr(0, longest_logged) : ""),
        only_faults_(request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS"),
        is_probe_((request.method == "GET" || request.method == "HEAD") && request.path == "/ready"),
        began_(clock_.now()) {}
  ~logged_exchange() override {
    const int status = status_ != 0 ? status_.load() : is_gone() ? client_gone : 500;
    if (is_streaming_) note("cut off");
    context_->metrics.count_response(status);
    if (!context_->log || is_probe_ || (only_faults_ && status < 400)) return;
    if (const std::size_t left_out = context_->lines_of_strangers.take_left_out(); left_out > 0)
      context_->log(
          fmt::format("{} more requests of unknown clients were refused, too many to write a line for each", left_out));
    if (!is_trusted_ && is_requests_fault(status) && !context_->lines_of_strangers.take_one()) return;
    const auto taken = std::chrono::duration<double, std::milli>(clock_.now() - began_).count();
    std::string line = fmt::format("{} {} {} {:.1f} ms{}", id(), request_line_, status, taken, notes_);
    if (!body_.empty()) line += " " + body_;
    context_->log(without_controls(line));
  }

  void reply(http_response response) override {
    status_ = response.status;
    if (is_servers_reason(response.status)) note(response.body.substr(0, longest_reason));
    forwarding_exchange::reply(std::move(response));
    const int replied = replied_status();
    if (replied == 0 || replied == status_) return;
    status_ = replied;
    note("no room for the answer");
  }
  void begin_stream(http_response head) override {
    status_ = head.status;
    is_streaming_ = true;
    forwarding_exchange::begin_stream(std::move(head));
  }
  void end_stream() override {
    is_streaming_ = false;
    forwarding_exchange::end_stream();
  }
  void mark_trusted() override {
    is_trusted_ = true;
    forwarding_exchange::mark_trusted();
  }
  void note(const std::string& what) override {
    const std::lock_guard lock(mutex_);
    notes_ += ", " + what;
  }

 private:
  std::shared_ptr<api_context> context_;
  std::string request_line_, body_;
  bool only_faults_, is_probe_;  ///< "no" is an answer to a probe, and comes every few seconds while a model loads
  monotonic_clock clock_;
  instant began_;
  std::atomic<int> status_{0};  ///< 0: no answer has begun
  std::atomic<bool> is_streaming_{false}, is_trusted_{false};
  std::mutex mutex_;
  std::string notes_;  ///< of several threads
};

}  // namespace

std::shared_ptr<http_exchange> log_exchange(std::shared_ptr<http_exchange> to, std::shared_ptr<api_context> context,
                                            const http_request& request) {
  return std::make_shared<logged_exchange>(std::move(to), std::move(context), request);
}

}  // namespace troupe
