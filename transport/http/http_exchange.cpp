#include <fmt/format.h>

#include "transport/http/http_connection_impl.hpp"

namespace troupe::detail {
namespace {

using stage = http_answer::stage;
using client = http_answer::client;

/// All lines but the last header, which says how long the body is, and the empty line after it.
std::string head_of(const http_response& response, const http_answer& answer) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", response.status, http_status_text(response.status));
  if (!response.content_type.empty()) head += fmt::format("content-type: {}\r\n", response.content_type);
  head += fmt::format("x-request-id: {}\r\n", answer.id);
  for (const auto* headers : {&response.headers, &answer.more_headers})
    for (const auto& [name, value] : *headers) head += fmt::format("{}: {}\r\n", name, value);
  if (!answer.keep_alive) head += "connection: close\r\n";
  return head;
}

std::string whole_response(const http_response& response, const http_answer& answer) {
  std::string text = head_of(response, answer) + fmt::format("content-length: {}\r\n\r\n", response.body.size());
  if (!answer.head_only) text += response.body;
  return text;
}

class exchange final : public http_exchange {
 public:
  explicit exchange(std::shared_ptr<http_answer> answer) : answer_(std::move(answer)) {}
  ~exchange() override { give_up(); }

  void reply(http_response response) override {
    {
      const std::lock_guard lock(answer_->mutex);
      if (answer_->at != stage::awaited) return;
      answer_->at = stage::complete;
      if (answer_->reader != client::gone) {
        response = answer_->connection->with_room(*answer_, std::move(response));
        answer_->status = response.status;
        answer_->out = whole_response(response, *answer_);
      }
    }
    flush_soon();
  }

  void begin_stream(http_response head) override {
    const std::lock_guard lock(answer_->mutex);
    if (answer_->at != stage::awaited) return;
    answer_->at = stage::streaming;
    answer_->out += head_of(head, *answer_);
    answer_->out += answer_->chunked ? "transfer-encoding: chunked\r\n\r\n" : "\r\n";
    append(head.body);
  }

  bool send(std::string_view piece) override {
    bool too_slow = false;
    {
      const std::lock_guard lock(answer_->mutex);
      if (!answer_->takes_more()) return false;
      too_slow = answer_->lags() || !answer_->connection->make_room(*answer_, piece.size());
      if (too_slow)
        answer_->reader = client::too_slow;
      else
        append(piece);
    }
    flush_soon(too_slow);
    return !too_slow;
  }

  void on_sent(std::function<void()> then) override {
    {
      const std::lock_guard lock(answer_->mutex);
      if (!answer_->takes_more()) return;
      answer_->on_sent = std::move(then);
    }
    flush_soon();
  }

  void end_stream() override {
    {
      const std::lock_guard lock(answer_->mutex);
      if (answer_->at != stage::streaming) return;
      answer_->at = stage::complete;
      if (answer_->chunked && !answer_->head_only) answer_->out += "0\r\n\r\n";
    }
    flush_soon();
  }

  void on_gone(std::function<void()> then) override {
    {
      const std::lock_guard lock(answer_->mutex);
      if (answer_->reader != client::gone) {
        answer_->on_gone = std::move(then);
        return;
      }
    }
    then();
  }
  bool is_gone() const override {
    const std::lock_guard lock(answer_->mutex);
    return answer_->reader == client::gone;
  }

  int replied_status() const override {
    const std::lock_guard lock(answer_->mutex);
    return answer_->status;
  }
  void mark_trusted() override {
    const std::lock_guard lock(answer_->mutex);
    if (answer_->connection) answer_->connection->mark_trusted();
  }
  const std::string& id() const override { return answer_->id; }

 private:
  void append(std::string_view piece) {
    if (piece.empty() || answer_->head_only) return;
    if (answer_->chunked)
      fmt::format_to(std::back_inserter(answer_->out), "{:x}\r\n{}\r\n", piece.size(), piece);
    else
      answer_->out += piece;
  }
  /// Under the lock a connection that is known here has not been dropped, so the context that it runs on still exists:
  /// the server drops all connections before that is destroyed.
  void flush_soon(bool at_once = false) {
    const std::lock_guard lock(answer_->mutex);
    if (std::exchange(answer_->flushing, true) && !at_once) return;
    if (answer_->connection) answer_->connection->flush_soon();
  }
  void give_up() {
    bool unanswered = false;
    {
      const std::lock_guard lock(answer_->mutex);
      unanswered = answer_->at == stage::awaited;
      if (answer_->at == stage::streaming) answer_->at = stage::cut;
    }
    if (unanswered)
      return reply({.status = 500, .content_type = "text/plain", .body = "the request was not answered\n"});
    flush_soon();
  }

  std::shared_ptr<http_answer> answer_;
};

}  // namespace

std::shared_ptr<http_exchange> make_exchange(const std::shared_ptr<http_answer>& answer) {
  return std::make_shared<exchange>(answer);
}

}  // namespace troupe::detail
