#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <sys/epoll.h>
#include <zmq.hpp>

#include "base/file_descriptor.hpp"
#include "base/wake_signal.hpp"
#include "transport/zmq/bus.hpp"
#include "transport/zmq/greeting.hpp"
#include "transport/zmq/inquiries.hpp"
#include "transport/zmq/sockets.hpp"
#include "transport/zmq/stream.hpp"
#include "transport/zmq/zap.hpp"

namespace troupe {

/// So many a socket hands over before another has its turn.
constexpr int frames_at_once = 256;

/// So many questions are asked at a time: a name server that does not answer holds up a thread for each.
constexpr int questions_at_once = 8;

/// Everything below is under `mutex_`; sockets too, which libzmq allows. Only the bus' thread calls the owner back, and
/// does so without the lock.
class bus::impl {
 public:
  impl(options chosen, events handlers);
  ~impl();

  const std::string& endpoint() const { return endpoint_; }
  link_id connect(const std::string& endpoint, const std::string& server_key, dialing how);
  bool wait_up(link_id id, std::chrono::milliseconds longest, const std::stop_token& stop);
  send_status send(link_id to, frame message);
  void close(link_id id);
  bool is_connected(link_id id);
  bool is_client(link_id id);

 private:
  using clock = std::chrono::steady_clock;

  struct link {
    link(link_id number, std::uint64_t queue_bytes) : id(number), out(queue_bytes) {}

    const link_id id;
    detail::send_window out;
    detail::receive_counter in;
    bool up = false;                                          // greeted, so that frames may go
    clock::time_point confirm_at = clock::time_point::max();  // if nothing is sent before: then it goes along
    clock::time_point confirmed_at{};
    detail::instance_id other{};                         // whom we talk with
    std::uint64_t attempt = 0;                           // the dialing side's count of connections
    clock::time_point unreachable_since = clock::now();  // if it is not up
    std::uint64_t stuck_at = 0;  // the first frame that the other side lacked when the last connection began; 0: none
    clock::time_point stuck_since{};

    // If we dial:
    std::string endpoint, server_key;
    dialing how = dialing::for_ever;
    std::deque<std::string> untried;  // if the endpoint has a name: its addresses, as endpoints
    std::string dialed_at;            // the endpoint, or an address of its name
    zmq::socket_t dealer, monitor;
    int dealer_signal = -1, monitor_signal = -1;
    std::uint64_t session = 0;  // the other side's number of this link
    std::chrono::milliseconds patience{0};
    bool input_noted = false;
    clock::time_point ask_mechanism_at{};  // not before

    // If the other side dials:
    std::uint64_t others_number = 0;
    std::string routing;  // empty: cannot be reached now
    std::string address;
    bool has_client_key = false;
    clock::time_point heard;

    bool dialed() const { return !endpoint.empty(); }
    bool may_be_forgotten() const { return !dialed() || how == dialing::until_forgotten; }
    /// Who is on the other side, for errors.
    const std::string& peer() const { return dialed() ? endpoint : address; }
  };

  /// What can have something to read.
  enum class source_kind : std::uint8_t { wake_up, router, router_monitor, zap, dealer, dealer_monitor };
  struct source {
    source_kind kind;
    link_id link = no_link;
  };
  /// Something to tell the owner: a frame, or why a link is closed.
  struct news {
    news(link_id of, std::variant<frame, link_end> told) : link(of), content(std::move(told)) {}

    link_id link;
    std::variant<frame, link_end> content;
  };
  /// Whether the other side hears that its link ends.
  enum class farewell : bool { silent, told };
  using parts = std::span<zmq::message_t>;

  // bus.cpp: the thread
  void listen();
  void run();
  void wait_for_input(int timeout_ms);
  void read(const source& from);
  void watch_signal(int signal, const source& from) const;
  void note_input(link& sent_to);  // of the socket that it has, or shares with others
  void wake() const;
  int next_timeout() const;
  bool may_stop();
  void settle();
  void deliver(std::vector<news>& happened);
  void close_sockets();

  // bus_dialing.cpp: links that we open
  void dial(link& to);
  void dial_at(link& to, const std::string& address);
  void hang_up(link& from);
  void redial_later(link& to);
  void redial_due();
  void read_dealer(link_id id);
  void read_dealer_monitor(link_id id);
  void note_event(link& from, const detail::socket_event& event);
  void note_disconnected(link& from);
  void ask_for_addresses(const link& of);
  void take_addresses(link_id asked, const std::vector<std::string>& addresses);
  void ask_for_mechanism(const link& of);
  void take_mechanism(link_id asked, const std::string& theirs);
  void on_welcome(link& from, const detail::welcome& welcome);

  // bus_listening.cpp: links that others open
  void read_router();
  void read_router_monitor();
  void on_stranger(const std::string& routing, parts received, bool too_many);
  void on_greeting(const std::string& routing, const zmq::message_t& header, const detail::greeting& greeting);
  link* add_link(const detail::greeting& greeting);
  /// `known`; null if that is not possible, and then it is gone.
  link* resume(link& known, const detail::greeting& greeting);
  void lose(link& unreachable);
  void look_after_links();
  void dismiss(const std::string& routing);
  void refuse_stranger(const std::string& routing, const std::string& address, std::string_view why);
  void report(std::string why);

  // bus_links.cpp: what is the same for both
  link* find(link_id id);
  void on_message(link& from, parts received, bool too_many);
  void on_data(link& from, const frame_header& header, parts received);
  /// False where it makes no sense now. `from` may be gone after it.
  bool on_control(link& from, detail::control_kind kind, std::span<const std::byte> body);
  result<frame_header, frame_error> check(parts received, bool too_many) const;
  static std::string fault_text(frame_error error, parts received);
  void begin_connection(link& to);
  void flush(link& to);
  bool transmit(link& to, const frame_header& header, zmq::message_t body, zmq::message_t attachment);
  void say(link& to, detail::control_kind kind, const std::vector<std::byte>& body = {});
  void confirm(link& from);
  void confirm_later(link& from);
  void confirm_along(link& from);
  void confirmations_due();
  /// Ends a link for a reason, which the owner gets to know. `ended` is gone after it.
  void shut(link& ended, link_end end, farewell how);
  void remove(link& ended, farewell how);

  const options options_;
  const events handlers_;
  const detail::instance_id instance_;
  std::string endpoint_;

  std::mutex mutex_;
  std::condition_variable_any up_or_gone_;  // a link that we opened
  zmq::context_t context_;
  std::unique_ptr<detail::zap_handler> zap_;
  zmq::socket_t router_, router_monitor_;
  bool router_noted_ = false;
  file_descriptor epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  wake_signal wake_up_;

  std::uint64_t last_id_ = 0;
  std::unordered_map<link_id, std::unique_ptr<link>> links_;
  std::unordered_map<std::string, link*> by_routing_;
  std::map<std::pair<detail::instance_id, std::uint64_t>, link*> by_other_;  // others' numbers
  std::unordered_set<std::string> refused_;                                  // routings; bounded

  std::vector<source> ready_;
  std::vector<news> happened_;
  detail::inquiries inquiries_{questions_at_once};
  clock::time_point now_ = clock::now();
  std::multimap<clock::time_point, link_id> redials_;
  std::deque<std::pair<clock::time_point, link_id>> to_confirm_;  // by time; some may have been confirmed meanwhile
  clock::time_point look_after_at_ = clock::time_point::max();
  clock::time_point reports_since_{};
  int reports_ = 0;
  bool stopping_ = false, settling_ = false;
  clock::time_point stop_at_ = clock::time_point::max();
  std::thread thread_;
};

}  // namespace troupe
