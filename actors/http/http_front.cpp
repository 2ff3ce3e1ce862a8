#include "actors/http/http_front.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "actors/http/api_error.hpp"
#include "actors/http/forwarding_exchange.hpp"
#include "actors/http/http_access.hpp"
#include "actors/http/limited_exchange.hpp"
#include "actors/http/routes.hpp"
#include "cluster/config/config_address.hpp"

namespace troupe {
namespace {

constexpr std::size_t longest_logged = 4096;

/// Writes the outcome of a request into the log when the exchange is gone.
class logged_exchange final : public forwarding_exchange {
 public:
  logged_exchange(std::shared_ptr<http_exchange> to, std::shared_ptr<api_context> context, const http_request& request)
      : forwarding_exchange(std::move(to)),
        context_(std::move(context)),
        what_(request.method + " " + request.path.substr(0, 128)),
        body_(context_->parts.log_bodies ? request.body.substr(0, longest_logged) : ""),
        quiet_(request.method == "GET"),
        began_(clock_.now()) {}
  ~logged_exchange() override {
    context_->metrics.count_response(status_);
    if (!context_->parts.log || (quiet_ && status_ < 400)) return;
    const auto taken = std::chrono::duration<double, std::milli>(clock_.now() - began_).count();
    std::string line = fmt::format("{} {} {} {:.1f} ms", id(), what_, status_, taken);
    if (!body_.empty()) line += " " + body_;
    std::replace_if(
        line.begin(), line.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    context_->parts.log(line);
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
  std::shared_ptr<api_context> context_;
  std::string what_, body_;
  bool quiet_;
  monotonic_clock clock_;
  instant began_;
  std::atomic<int> status_{500};
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

std::string error_body(int status, std::string_view why) {
  return error_json(api_error(status, std::string(why)));
}

constexpr std::size_t longest_at_once = 64 << 10;  // of a body: it takes some milliseconds to read and tokenize

/// Handles long requests on another thread, so that they hold up nobody's stream.
void handle_call(const api_routes::api_handler& handler, const api_call& call) {
  const std::size_t bytes = call.request->body.size();
  if (bytes <= longest_at_once) return handler(call);
  const bool taken =
      call.context->parts.work->offer(bytes, [handler, call] { guarded(call.exchange, [&] { handler(call); }); });
  if (!taken)
    throw api_error(503, "too many large requests at a time: try again", {}, "service_unavailable")
        .retry_after(std::chrono::seconds(1));
}

}  // namespace

void api_routes::add_guarded(std::string_view method, std::string_view path, std::function<void(api_call&)> handle) {
  to_.add(method, path,
          [context = context_, handle = std::move(handle)](http_request&& request,
                                                           const std::shared_ptr<http_exchange>& exchange) {
            api_call call{context, std::make_shared<const http_request>(std::move(request)), {}, exchange};
            guarded(exchange, [&] { handle(call); });
          });
}

void api_routes::add(std::string_view method, std::string_view path, api_handler handler) {
  add_guarded(method, path, [handler = std::move(handler)](api_call& call) {
    call.key = admit(*call.context, *call.request);
    handle_call(handler, call);
  });
}

void api_routes::add_limited(std::string_view method, std::string_view path, api_handler handler) {
  add_guarded(method, path, [handler = std::move(handler)](api_call& call) {
    call.key = admit(*call.context, *call.request);
    if (call.key.limits.any()) call.exchange = limit_exchange(call);
    if (call.exchange) guarded(call.exchange, [&] { handle_call(handler, call); });
  });
}

void api_routes::add_open(std::string_view method, std::string_view path, api_handler handler) {
  add_guarded(method, path, handler);
}

struct http_front::impl {
  impl(const http_options& options, http_parts parts)
      : context(std::make_shared<api_context>(std::move(parts))), server(with_errors(options), handler()) {
    context->is_this_machines = is_loopback_host(options.host);
    api_routes to(router, context);
    add_text_routes(to);
    add_model_routes(to);
    add_status_routes(to);
    add_file_routes(to);
    add_batch_routes(to);
    add_fine_tuning_routes(to);
    server.start();
  }

  static http_options with_errors(http_options options) {
    options.error_body = error_body;
    return options;
  }
  http_handler handler() {
    return [this](http_request&& request, std::shared_ptr<http_exchange> exchange) {
      auto logged = std::make_shared<logged_exchange>(std::move(exchange), context, request);
      auto found = router.find(request.method, request.path);
      if (found.handler) {
        request.places = std::move(found.places);
        return (*found.handler)(std::move(request), std::move(logged));
      }
      logged->reply(found.allowed.empty() ? nothing_at_path() : wrong_method(request.path, found.allowed));
    };
  }

  void stop() {
    server.stop();
    context->parts.work->stop();
    context->parts.file_work->stop();
  }

  std::shared_ptr<api_context> context;
  http_router router;
  http_server server;
};

http_front::http_front(const http_options& options, http_parts parts)
    : impl_(std::make_unique<impl>(options, std::move(parts))) {}

http_front::~http_front() {
  stop();
}

void http_front::stop() {
  impl_->stop();
}

std::uint16_t http_front::port() const {
  return impl_->server.port();
}

}  // namespace troupe
