#include <algorithm>
#include <exception>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>

#include "transport/http/http_connection_impl.hpp"
#include "transport/http/http_request_impl.hpp"

namespace troupe::detail {
namespace {

constexpr std::size_t most_pipelined = 64 << 10;
constexpr std::size_t longest_uncounted = 64 << 10;

/// Empty where the client has gone. One of IPv4 looks like that, also at a socket of IPv6.
std::string address_at(const socket& from) {
  boost::system::error_code gone;
  const asio::ip::address address = from.remote_endpoint(gone).address();
  if (gone) return {};
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address.to_string();
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
}

/// What the server itself says. 503 is for a moment.
http_response refusal_response(const http_service& service, int status, std::string_view why) {
  http_response refused{.status = status, .body = service.error_body(status, why)};
  if (status == 503) refused.headers = {{"retry-after-ms", "1000"}, {"retry-after", "1"}};
  return refused;
}

}  // namespace

http_connection::http_connection(socket from, std::shared_ptr<http_shared> shared)
    : socket_(std::move(from)),
      shared_(std::move(shared)),
      client_(address_at(socket_)),
      deadline_(socket_.get_executor()) {
  ++shared_->connections;
  awaited_.begin(steady::now());
}

http_connection::~http_connection() {
  --shared_->connections;
}

void http_connection::start() {
  boost::system::error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  deadline_.start(weak_from_this(), [this] { on_time(); });
  deadline_.set(shared_->options.header_time);
  read();
}

// --- reading ---

/// One read is always under way, even while an answer is being made, so that we notice when the client goes.
void http_connection::read() {
  if (is_reading_ || closed_) return;
  if (answer_ && buffer_.size() >= most_pipelined) return;
  is_reading_ = true;
  // Not into buffer_: that may be parsed, and move, while the read is under way.
  socket_.async_read_some(asio::buffer(incoming_), [self = shared_from_this()](const auto& fault, std::size_t bytes) {
    self->is_reading_ = false;
    self->on_read(fault, bytes);
  });
}

void http_connection::on_read(const boost::system::error_code& fault, std::size_t bytes) {
  if (closed_) return;
  if (fault) return drop();
  if (lingering_) {
    lingered_ += bytes;
    if (lingered_ > shared_->options.body_bytes) return drop();
    extend_deadline(shared_->options.linger_time, lingered_);
    return read();
  }
  buffer_.commit(asio::buffer_copy(buffer_.prepare(bytes), asio::buffer(incoming_), bytes));
  if (!answer_) parse();
  if (!closed_) read();
}

void http_connection::parse() {
  while (!answer_ && !closed_ && !lingering_ && buffer_.size() > 0) {
    if (!parser_) {
      skip_empty_lines();
      if (buffer_.size() == 0) return;
      begin_request();
    }
    boost::system::error_code fault;
    buffer_.consume(parser_->put(buffer_.data(), fault));
    if (fault && fault != beast::http::error::need_more) {
      const auto [status, why] = refusal_of(fault, shared_->options.body_bytes);
      return refuse_with(status, why);
    }
    if (parser_->is_header_done() && !take_in()) return;
    if (parser_->is_done()) return dispatch(true);
    if (fault != beast::http::error::need_more) continue;
    // The parser bounds a head, but neither the line before a chunk nor the fields after the last one.
    if (buffer_.size() > shared_->options.header_bytes) refuse_with(431, "a line of the request is too large");
    return;
  }
}

/// Some clients send one after a body.
void http_connection::skip_empty_lines() {
  const auto has_line_end = [this] {
    const char next = buffer_.size() > 0 ? *static_cast<const char*>(buffer_.cdata().data()) : ' ';
    return next == '\r' || next == '\n';
  };
  while (has_line_end()) buffer_.consume(1);
}

void http_connection::begin_request() {
  parser_.emplace(shared_->bodies, client_);
  parser_->header_limit(shared_->options.header_bytes);
  parser_->body_limit(shared_->options.body_bytes);
  head_taken_ = false;
  deadline_.set(shared_->options.header_time);
}

/// The head, and what has come of the body. False where the request is refused already.
bool http_connection::take_in() {
  if (!head_taken_ && !take_head()) return false;
  if (!reserve_body()) return false;
  extend_body_time();
  return true;
}

/// False where the request is refused already. What has come counts, not what is announced, so that nobody takes up
/// room with a few words; and short bodies find room always.
bool http_connection::reserve_body() {
  const std::size_t come = parser_->get().body().size(), bytes = come > longest_uncounted ? come : 0;
  if (parser_->room.held() == 0 && !admits_body_or_answers(bytes)) return false;
  if (parser_->room.hold(bytes)) return true;
  refuse_with(503, "too many large requests at a time: try again");
  return false;
}

/// The parser stops behind the head, and what counts is what it has read by then: it adds fields that come behind a
/// body to the headers. False where the request is refused already.
bool http_connection::take_head() {
  head_taken_ = true;
  parser_->eager(true);
  begin_body_time();
  const request_head& head = parser_->get();
  head_ = request_of(head);
  if (const auto fault = fault_in(head, parser_->chunked() || parser_->content_length().value_or(0) > 0)) {
    refuse_with(fault->status, fault->why);
    return false;
  }
  if (!admits_body_or_answers(parser_->content_length().value_or(0))) return false;
  if (parser_->is_done() || !waits_to_go_on(head)) return true;
  writing_ = "HTTP/1.1 100 Continue\r\n\r\n";
  written_ = 0;
  write_rest();
  return true;
}

/// False where the request is answered already: without its body, if that is a long one that nobody wants from there.
bool http_connection::admits_body_or_answers(std::size_t bytes) {
  if (bytes <= longest_uncounted) return true;
  if (shared_->service.takes_long_body(head_)) return claims_request_or_drops();
  dispatch(false);
  return false;
}

/// The connection cannot be given up from here on. False where it was.
bool http_connection::claims_request_or_drops() {
  if (awaited_.end()) return true;
  drop();
  return false;
}

void http_connection::dispatch(bool is_whole) {
  if (!claims_request_or_drops()) return;
  if (!is_writing_) deadline_.clear();
  const bool is_new = parser_->get().version() >= 11, keeps_alive = parser_->get().keep_alive();
  http_request request = std::move(head_);
  if (is_whole) request.body = std::move(parser_->get().body());
  parser_.reset();
  begin_answer(request);
  answer_->chunked = is_new;
  answer_->keep_alive = is_whole && is_new && keeps_alive && !shared_->stopping;
  answer_->head_only = request.method == "HEAD";
  const auto exchange = make_exchange(answer_);
  try {
    shared_->service.handle(std::move(request), exchange);
  } catch (const std::exception&) {
    exchange->reply(refusal_response(shared_->service, 500, "something went wrong here"));
  }
}

void http_connection::begin_answer(http_request& to) {
  if (to.id.empty()) to.id = new_request_id();
  to.client = client_;
  answer_ = std::make_shared<http_answer>(shared_->answers, client_);
  answer_->connection = shared_from_this();
  answer_->backlog = shared_->options.stream_backlog;
  answer_->id = to.id;
  answer_->more_headers = shared_->service.more_headers(to);
}

std::string http_connection::new_request_id() {
  return fmt::format("req-{:08x}{:08x}", shared_->instance, ++shared_->last_request);
}

http_request http_connection::what_has_come() const {
  if (head_taken_) return head_;
  const auto unparsed = buffer_.cdata();
  return unfinished_request(parser_->get(), {static_cast<const char*>(unparsed.data()), unparsed.size()});
}

void http_connection::refuse_with(int status, std::string_view why) {
  if (!claims_request_or_drops()) return;
  http_request request = what_has_come();
  begin_answer(request);
  parser_.reset();
  answer_->keep_alive = false;
  http_service& service = shared_->service;
  service.around_refusal(make_exchange(answer_), request)->reply(refusal_response(service, status, why));
}

// --- writing ---

/// All that an answer holds counts: the pieces of a stream may be short, but many.
bool http_connection::make_room(http_answer& answer, std::size_t bytes) {
  const std::size_t held = answer.in_flight + answer.out.size() + bytes;
  if (answer.head_only || held <= std::max(longest_uncounted, answer.room.held())) return true;
  return answer.room.hold(held);
}

http_response http_connection::with_room(http_answer& answer, http_response response) {
  if (make_room(answer, response.body.size())) return response;
  return refusal_response(shared_->service, 503, "too many long answers wait to be read: try again");
}

/// All but what it still holds.
void http_connection::give_back_room(http_answer& answer) {
  const std::size_t held = answer.in_flight + answer.out.size();
  answer.room.hold(held > longest_uncounted ? std::min(held, answer.room.held()) : 0);
}

/// Flushes later, even on the strand, because the caller holds the answer's lock.
void http_connection::flush_soon() {
  asio::post(socket_.get_executor(), [self = shared_from_this()] { self->flush(); });
}

void http_connection::flush() {
  if (closed_ || !answer_) return;
  auto at = http_answer::stage::awaited;
  bool too_slow = false;
  std::function<void()> sent;
  {
    const std::lock_guard lock(answer_->mutex);
    too_slow = answer_->reader == http_answer::client::too_slow;
    if (is_writing_ && !too_slow) return;
    answer_->flushing = false;
    writing_.clear();
    std::swap(writing_, answer_->out);
    answer_->in_flight = writing_.size();
    give_back_room(*answer_);
    if (writing_.empty()) sent = std::exchange(answer_->on_sent, nullptr);
    at = answer_->at;
  }
  if (too_slow) return drop();
  written_ = 0;
  if (!writing_.empty()) return write_rest();
  if (at == http_answer::stage::cut) return drop();
  if (at == http_answer::stage::complete) return finish_answer();
  if (sent) sent();
}

void http_connection::write_rest() {
  is_writing_ = true;
  deadline_.set(shared_->options.write_time);
  socket_.async_write_some(
      asio::buffer(writing_) + written_,
      [self = shared_from_this()](const auto& fault, std::size_t bytes) { self->on_written(fault, bytes); });
}

void http_connection::on_written(const boost::system::error_code& fault, std::size_t bytes) {
  if (closed_) return;
  is_writing_ = false;
  if (fault) return drop();
  written_ += bytes;
  if (written_ < writing_.size()) return write_rest();
  if (writing_.capacity() > most_pipelined) writing_ = {};
  if (!answer_) return begin_body_time();  // it was told to go on
  deadline_.clear();
  flush();
}

void http_connection::finish_answer() {
  const bool keep = answer_->keep_alive && !shared_->stopping;
  std::function<void()> untold;  // destroyed after the lock is released: it may hold the exchange
  {
    const std::lock_guard lock(answer_->mutex);
    answer_->connection = nullptr;
    untold = std::exchange(answer_->on_gone, nullptr);
    answer_->reader = http_answer::client::gone;
  }
  answer_ = nullptr;
  awaited_.begin(steady::now());
  if (!keep) return linger();
  deadline_.set(shared_->options.idle);
  parse();
  read();
}

/// Reads and discards what the client still sends, for a while: closing at once would destroy the response on its way.
void http_connection::linger() {
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  lingering_ = true;
  buffer_.clear();
  body_time_began_ = steady::now();
  extend_deadline(shared_->options.linger_time, 0);
  read();
}

void http_connection::drop() {
  if (std::exchange(closed_, true)) return;
  boost::system::error_code ignored;
  socket_.close(ignored);
  deadline_.end();
  const auto answer = std::exchange(answer_, nullptr);
  if (!answer) return;
  std::function<void()> tell, unsent;  // destroyed after the lock is released, with whatever they hold
  {
    const std::lock_guard lock(answer->mutex);
    answer->reader = http_answer::client::gone;
    answer->connection = nullptr;
    answer->out = {};
    answer->in_flight = 0;
    give_back_room(*answer);
    tell = std::exchange(answer->on_gone, nullptr);
    unsent = std::exchange(answer->on_sent, nullptr);
  }
  if (tell) tell();
}

void http_connection::end_when_idle() {
  if (!answer_) drop();
}

// --- time ---

void http_connection::begin_body_time() {
  body_time_began_ = steady::now();
  deadline_.set_at(body_time_began_ + shared_->options.body_time);
  extend_body_time();
}

/// What surrounds chunks gives no time: it may go on for ever.
void http_connection::extend_body_time() {
  if (is_writing_) return;  // that it may go on, which it has to read first
  extend_deadline(shared_->options.body_time, parser_->get().body().size());
}

/// A client may be slow, as long as its body comes.
void http_connection::extend_deadline(std::chrono::milliseconds at_least, std::size_t come) {
  const auto rate = static_cast<double>(shared_->options.body_rate);
  const std::chrono::duration<double> earned(static_cast<double>(come) / rate);
  deadline_.set_at(body_time_began_ + at_least + std::chrono::duration_cast<steady::duration>(earned));
}

void http_connection::on_time() {
  if (closed_) return;
  const bool half_sent = parser_.has_value() && !answer_;
  if (half_sent && !lingering_ && !is_writing_) return refuse_with(408, "the request did not come in time");
  drop();
}

}  // namespace troupe::detail
