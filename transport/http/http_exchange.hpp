// A handler's side of one request. Thread-safe: the answer may come from any thread, at any time.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transport/http/http_message.hpp"

namespace troupe {

/// Either one reply(), or begin_stream(), send()… and end_stream(). An exchange that is let go without an answer is
/// answered with 500; a stream that is let go without its end is cut off.
class http_exchange {
 public:
  virtual ~http_exchange() = default;

  /// If so much waits for all clients that there is no room for a long response, the client gets a 503 instead.
  virtual void reply(http_response response) = 0;

  /// The head goes out with the first piece. `head.body` is the first piece, or empty.
  virtual void begin_stream(http_response head) = 0;
  /// Never waits; a piece may have any length. False once nobody listens any more: the client has gone, or so much was
  /// waiting for it, or for all clients together, that it was dropped.
  virtual bool send(std::string_view piece) = 0;
  /// Called once, when all that was sent is on its way, and never if nobody listens any more: for what is longer than
  /// should wait in memory. From any thread.
  virtual void on_sent(std::function<void()> then) = 0;
  virtual void end_stream() = 0;

  /// Called once if the client goes before all of the answer was sent; at once if nobody listens any more, since it has
  /// gone or has all of it. From any thread.
  virtual void on_gone(std::function<void()> then) = 0;
  /// The same as a question: whether work for this request would be for nobody. From any thread.
  virtual bool is_gone() const = 0;
  virtual const std::string& id() const = 0;

  /// The status of the reply, once there is one: 503 where there was no room for what reply() was given. Else 0.
  virtual int replied_status() const { return 0; }
  /// Whoever asks has shown that they may: where there are too many connections, theirs is kept longer than others.
  /// From any thread.
  virtual void mark_trusted() {}
  /// Something that a log of this request should say of it. From any thread.
  virtual void note(const std::string& /*what*/) {}
};

using http_handler = std::function<void(http_request&& request, std::shared_ptr<http_exchange> exchange)>;

}  // namespace troupe
