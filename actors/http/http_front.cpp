#include "actors/http/http_front.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/http/api_error.hpp"
#include "actors/http/forwarding_exchange.hpp"
#include "actors/http/routes.hpp"
#include "cluster/config/config_address.hpp"

namespace troupe {
namespace {

constexpr std::size_t longest_logged = 4096;

/// For the log and the counts, as proxies have it: there is nobody to read an answer.
constexpr int client_gone = 499;

/// Writes the outcome of a request into the log when the exchange is gone.
class logged_exchange final : public forwarding_exchange {
 public:
  logged_exchange(std::shared_ptr<http_exchange> to, std::shared_ptr<api_context> context, const http_request& request)
      : forwarding_exchange(std::move(to)),
        context_(std::move(context)),
        request_line_(request.method + " " + request.path.substr(0, 128)),
        body_(context_->log_bodies ? request.body.substr(0, longest_logged) : ""),
        only_faults_(request.method == "GET"),
        began_(clock_.now()) {}
  ~logged_exchange() override {
    const int status = status_ != 0 ? status_.load() : status_without_answer();
    context_->metrics.count_response(status);
    if (!context_->log || (only_faults_ && status < 400)) return;
    const auto taken = std::chrono::duration<double, std::milli>(clock_.now() - began_).count();
    std::string line = fmt::format("{} {} {} {:.1f} ms", id(), request_line_, status, taken);
    if (!body_.empty()) line += " " + body_;
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    context_->log(line);
  }

  void reply(http_response response) override {
    status_ = response.status;
    forwarding_exchange::reply(std::move(response));
  }
  void begin_stream(http_response head) override {
    status_ = head.status;
    forwarding_exchange::begin_stream(std::move(head));
  }

 private:
  int status_without_answer() {
    const auto gone = std::make_shared<std::atomic<bool>>(false);
    forwarding_exchange::on_gone([gone] { *gone = true; });  // at once if it has gone
    return *gone ? client_gone : 500;
  }

  std::shared_ptr<api_context> context_;
  std::string request_line_, body_;
  bool only_faults_;
  monotonic_clock clock_;
  instant began_;
  std::atomic<int> status_{0};  ///< 0: no answer has begun
};

/// Says where the API is, since many clients are given an address without /v1.
constexpr std::string_view where_the_api_is = "OpenAI's API is at /v1: /v1/chat/completions, /v1/completions";

http_response nothing_at_path() {
  return error_response(
      api_error(404, fmt::format("there is nothing at this path: {}", where_the_api_is), {}, "unknown_url"));
}

http_response wrong_method(const std::string& path, const std::string& allowed) {
  std::string message = "this path has other methods: " + allowed;
  if (path == "/") message += fmt::format("; {}", where_the_api_is);
  http_response refused = error_response(api_error(405, message));
  refused.headers.emplace_back("allow", allowed);
  return refused;
}

http_options with_error_body(http_options options) {
  options.error_body = [](int status, std::string_view why) { return error_json(api_error(status, std::string(why))); };
  return options;
}

}  // namespace

http_front::http_front(const http_options& options, http_parts parts)
    : context_(std::make_shared<api_context>(std::move(parts))),
      server_(with_error_body(options), [this](http_request&& request, std::shared_ptr<http_exchange> exchange) {
        handle(std::move(request), std::move(exchange));
      }) {
  context_->is_this_machines = is_loopback_host(options.host);
  api_routes to(router_, context_);
  add_text_routes(to);
  add_model_routes(to);
  add_status_routes(to);
  add_file_routes(to);
  add_batch_routes(to);
  add_fine_tuning_routes(to);
  server_.start();
}

http_front::~http_front() {
  stop();
}

void http_front::handle(http_request&& request, std::shared_ptr<http_exchange> exchange) {
  auto logged = std::make_shared<logged_exchange>(std::move(exchange), context_, request);
  auto found = router_.find(request.method, request.path);
  if (found.handler) {
    request.places = std::move(found.places);
    return (*found.handler)(std::move(request), std::move(logged));
  }
  logged->reply(found.allowed.empty() ? nothing_at_path() : wrong_method(request.path, found.allowed));
}

void http_front::stop() {
  server_.stop();
  context_->work->stop();
  context_->file_work->stop();
}

}  // namespace troupe
