#include "transport/http/http_client.hpp"

#include <chrono>
#include <deque>
#include <optional>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/error.hpp"
#include "base/host_port.hpp"

namespace troupe {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

class client_connection;
using idle_connections = std::deque<std::shared_ptr<client_connection>>;

/// One request at a time.
class client_connection : public std::enable_shared_from_this<client_connection> {
 public:
  client_connection(asio::io_context& context, idle_connections& idle) : socket_(context), idle_(idle) {}

  void send(const tcp::resolver::results_type& to, std::string request, http_client::listener heard) {
    request_ = std::move(request);
    heard_ = std::move(heard);
    parser_.emplace();
    parser_->eager(true);
    parser_->body_limit(boost::none);
    told_head_ = false;
    to_ = to;
    was_idle_ = socket_.is_open();
    if (was_idle_)
      write();
    else
      connect();
  }

 private:
  void connect() {
    // Of a socket that cannot be opened, connecting would say only that it was given up.
    boost::system::error_code fault;
    socket_.open(to_.begin()->endpoint().protocol(), fault);
    if (fault == boost::system::errc::too_many_files_open)
      return asio::post(socket_.get_executor(),
                        [self = shared_from_this(), fault] { self->end(fault.message() + ": raise `ulimit -Hn`"); });
    asio::async_connect(socket_, to_, [self = shared_from_this()](const auto& fault, const auto&) {
      if (fault) return self->end(fault.message());
      boost::system::error_code ignored;
      self->socket_.set_option(tcp::no_delay(true), ignored);
      self->write();
    });
  }
  void write() {
    asio::async_write(socket_, asio::buffer(request_), [self = shared_from_this()](const auto& fault, std::size_t) {
      if (fault) return self->go_unanswered(fault.message());
      self->read();
    });
  }
  /// A server may close an idle connection at any time: what it did not see is sent again, on a new one.
  void go_unanswered(const std::string& error) {
    if (!std::exchange(was_idle_, false)) return end(error);
    boost::system::error_code ignored;
    socket_.close(ignored);
    buffer_.clear();
    connect();
  }
  void read() {
    socket_.async_read_some(buffer_.prepare(16 << 10), [self = shared_from_this()](const auto& fault, std::size_t n) {
      self->buffer_.commit(n);
      self->take(fault);
    });
  }
  void take(const boost::system::error_code& fault) {
    if (fault && buffer_.size() == 0 && !parser_->got_some()) return go_unanswered(fault.message());
    boost::system::error_code problem;
    while (buffer_.size() > 0 && !parser_->is_done() && !problem)
      buffer_.consume(parser_->put(buffer_.data(), problem));
    if (problem && problem != http::error::need_more) return end(problem.message());
    if (fault == asio::error::eof) parser_->put_eof(problem = {});
    if (parser_->is_header_done() && !told_head_) tell_head();
    auto& body = parser_->get().body();
    if (!body.empty() && heard_.on_data) heard_.on_data(body);
    body.clear();
    if (parser_->is_done()) return end({});
    if (fault) return end(fault.message());
    read();
  }
  void tell_head() {
    told_head_ = true;
    http_headers headers;
    for (const auto& field : parser_->get()) headers.emplace_back(field.name_string(), field.value());
    if (heard_.on_head) heard_.on_head(parser_->get().result_int(), headers);
  }
  void end(const std::string& error) {
    const auto heard = std::exchange(heard_, {});
    boost::system::error_code ignored;
    if (!error.empty() || !parser_->keep_alive())
      socket_.close(ignored);
    else
      idle_.push_back(shared_from_this());
    if (heard.on_end) heard.on_end(error);
  }

  tcp::socket socket_;
  tcp::resolver::results_type to_;
  idle_connections& idle_;
  boost::beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
  std::string request_;
  http_client::listener heard_;
  bool told_head_ = false;
  bool was_idle_ = false;  ///< nothing has come yet on a connection that served another request before
};

}  // namespace

http_url parse_http_url(std::string_view text) {
  constexpr std::string_view scheme = "http://";
  if (!text.starts_with(scheme)) refuse("{}: should begin with http://", text);
  std::string_view rest = text.substr(scheme.size());
  http_url url;
  const std::size_t slash = rest.find('/');
  if (slash != rest.npos) url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  rest = rest.substr(0, slash);
  auto place = split_host_port(rest);
  if (!place) place = split_host_port(fmt::format("{}:{}", rest, url.port));
  if (!place) refuse("{}: names no host, or a port that is none: write http://HOST or http://HOST:PORT", text);
  url.host = place->host;
  url.port = static_cast<std::uint16_t>(place->port);
  return url;
}

struct http_client::impl {
  asio::io_context context;
  http_url url;
  tcp::resolver::results_type addresses;
  idle_connections idle;
};

http_client::http_client(http_url to) : impl_(std::make_unique<impl>()) {
  impl_->url = std::move(to);
  boost::system::error_code fault;
  impl_->addresses = tcp::resolver(impl_->context).resolve(impl_->url.host, std::to_string(impl_->url.port), fault);
  if (fault) refuse("{}: there is no such host: {}", impl_->url.host, fault.message());
}

http_client::~http_client() = default;

void http_client::send(const std::string& method, const std::string& path, const http_headers& headers,
                       const std::string& body, listener heard) {
  std::string request = fmt::format("{} {}{} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n", method, impl_->url.path,
                                    path, text_of(host_port{impl_->url.host, impl_->url.port}), body.size());
  for (const auto& [name, value] : headers) request += fmt::format("{}: {}\r\n", name, value);
  request += "\r\n" + body;
  std::shared_ptr<client_connection> connection;
  if (impl_->idle.empty()) {
    connection = std::make_shared<client_connection>(impl_->context, impl_->idle);
  } else {
    connection = impl_->idle.front();
    impl_->idle.pop_front();
  }
  connection->send(impl_->addresses, std::move(request), std::move(heard));
}

void http_client::after(double seconds, std::function<void()> then) {
  const auto wait = std::chrono::duration_cast<asio::steady_timer::duration>(std::chrono::duration<double>(seconds));
  const auto timer = std::make_shared<asio::steady_timer>(impl_->context, wait);
  timer->async_wait([timer, then = std::move(then)](const auto& fault) {
    if (!fault) then();
  });
}

void http_client::run() {
  impl_->context.restart();
  impl_->context.run();
}

void http_client::stop() {
  impl_->context.stop();
}

}  // namespace troupe
