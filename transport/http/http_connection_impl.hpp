#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "transport/http/awaited_request_impl.hpp"
#include "transport/http/byte_budget_impl.hpp"
#include "transport/http/http_server.hpp"
#include "transport/http/lazy_deadline_impl.hpp"

namespace troupe::detail {

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;
using strand = asio::strand<asio::io_context::executor_type>;
using socket = asio::basic_stream_socket<tcp, strand>;
using steady = std::chrono::steady_clock;

class http_connection;

/// What all connections share.
struct http_shared {
  http_shared(http_options chosen, http_service& served) : options(std::move(chosen)), service(served) {}

  const http_options options;
  http_service& service;
  std::atomic<std::size_t> connections{0};
  const std::shared_ptr<byte_budget> bodies = std::make_shared<byte_budget>(options.bodies_bytes);
  const std::shared_ptr<byte_budget> answers = std::make_shared<byte_budget>(options.answers_bytes);
  std::atomic<std::uint64_t> last_request{0};
  std::uint32_t instance = 0;  ///< random, so that the request ids of two processes differ
  std::atomic<bool> stopping{false};
};

/// The part of an exchange that the connection and the handler share.
struct http_answer {
  enum class stage : std::uint8_t {
    awaited,    ///< nothing has come from the handler yet
    streaming,  ///< more will come
    complete,   ///< nothing more will come
    cut         ///< the same, but the handler let go of a stream before its end: the connection is closed after it
  };
  enum class client : std::uint8_t {
    listening,
    too_slow,  ///< the connection is to drop it
    gone       ///< nobody listens any more
  };

  http_answer(std::shared_ptr<byte_budget> answers, const std::string& client) : room(std::move(answers), client) {}

  std::mutex mutex;
  stage at = stage::awaited;
  client reader = client::listening;
  bool flushing = false;                   ///< the connection was told to take `out`
  std::size_t in_flight = 0;               ///< bytes that it took before and writes
  int status = 0;                          ///< of the reply, once there is one
  std::string out;                         ///< what the connection has not taken yet, framed
  budget_share room;                       ///< of what all answers may hold, until this one's bytes are sent
  std::function<void()> on_gone, on_sent;  ///< taken by whoever calls them
  std::shared_ptr<http_connection> connection;

  bool takes_more() const { return at == stage::streaming && reader == client::listening; }
  /// What no write has begun on yet says nothing of the client.
  bool lags() const { return in_flight > 0 && out.size() > backlog; }

  // fixed from the beginning
  std::string id;
  http_headers more_headers;
  bool chunked = true, head_only = false, keep_alive = true;
  std::size_t backlog = 0;
};

/// Takes memory as it comes, not as much as the request says that it will have.
struct growing_body : beast::http::string_body {
  struct reader : beast::http::string_body::reader {
    using beast::http::string_body::reader::reader;
    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& fault) { fault = {}; }
  };
};

/// A request on its way, and the room that its body takes.
struct request_reader : beast::http::request_parser<growing_body> {
  request_reader(std::shared_ptr<byte_budget> bodies, const std::string& client) : room(std::move(bodies), client) {}

  budget_share room;
};

/// One client. All of it runs on the strand of its socket, except where a comment says otherwise.
class http_connection : public std::enable_shared_from_this<http_connection> {
 public:
  http_connection(socket from, std::shared_ptr<http_shared> shared);
  ~http_connection();

  void start();
  void flush_soon();  ///< from any thread, under the answer's lock: there is something in it
  /// From any thread, under the answer's lock: false where answers that nobody reads hold too much already.
  bool make_room(http_answer& answer, std::size_t bytes);
  /// The same for a whole response, which becomes a refusal then.
  http_response with_room(http_answer& answer, http_response response);
  void drop();  ///< on the strand
  void end_when_idle();

  // From any thread.
  void mark_trusted() { is_trusted_ = true; }
  bool is_waiting() const { return awaited_.is_waited_for(); }
  /// Of two that wait the one that is less is the first to be given up.
  auto rank() const { return std::pair(is_trusted_.load(), awaited_.since()); }
  /// False where its request has come meanwhile. Otherwise it is to be dropped.
  bool give_up() { return awaited_.give_up(); }

  strand executor() { return socket_.get_executor(); }

 private:
  void read();
  void on_read(const boost::system::error_code& fault, std::size_t bytes);
  void parse();
  void skip_empty_lines();
  void begin_request();
  bool take_in();
  bool reserve_body();
  bool take_head();
  bool admits_body_or_answers(std::size_t bytes);
  bool claims_request_or_drops();
  void dispatch(bool is_whole);
  void begin_answer(http_request& to);
  http_request what_has_come() const;
  std::string new_request_id();
  void refuse_with(int status, std::string_view why);
  void flush();
  void write_rest();
  void on_written(const boost::system::error_code& fault, std::size_t bytes);
  void finish_answer();
  void linger();
  void give_back_room(http_answer& answer);

  void begin_body_time();
  void extend_body_time();
  void extend_deadline(std::chrono::milliseconds at_least, std::size_t come);
  void on_time();

  socket socket_;
  std::shared_ptr<http_shared> shared_;
  const std::string client_;  ///< its address; empty where it had gone at once
  awaited_request awaited_;   ///< until it has come whole, or a long body of it that may take its time
  std::atomic<bool> is_trusted_{false};
  lazy_deadline deadline_;

  std::array<char, 4096> incoming_;
  beast::flat_buffer buffer_;  ///< what came and was not parsed
  std::optional<request_reader> parser_;
  http_request head_;                    ///< without the body, once it was taken
  steady::time_point body_time_began_;   ///< or that of what is left of it, which nobody wants
  std::shared_ptr<http_answer> answer_;  ///< of the request in progress
  std::string writing_;
  std::size_t written_ = 0;
  bool is_reading_ = false, is_writing_ = false, head_taken_ = false, closed_ = false, lingering_ = false;
  std::size_t lingered_ = 0;
};

std::shared_ptr<http_exchange> make_exchange(const std::shared_ptr<http_answer>& answer);

}  // namespace troupe::detail
