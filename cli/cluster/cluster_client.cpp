#include "cli/cluster/cluster_client.hpp"

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "actors/wire.hpp"
#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/shell_word.hpp"
#include "cli/cluster/head_silence.hpp"
#include "cli/output.hpp"
#include "cluster/config/config.hpp"

namespace troupe {
namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds first_answer = 3s, look_interval = 100ms, hello_interval = 1s;
constexpr auto patience = head_silence::patience;

std::string flag_or_variable(const std::string& flag, const char* variable, const char* otherwise) {
  if (!flag.empty()) return flag;
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

[[noreturn]] void fail(const command_answer& why) {
  if (why.fault == command_fault::failed) throw std::runtime_error(why.error);
  if (why.fault == command_fault::unknown) throw unknown_error(why.error);
  throw input_error(why.error);
}

[[noreturn]] void fail(const client_refused& why) {
  if (!why.bad_input) throw std::runtime_error(why.error);
  if (why.field_name.empty()) throw input_error(why.error);
  throw field_error(why.field_name, why.error, why.code);
}

nlohmann::ordered_json read_answer(const std::string& text) {
  auto answer = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!answer.is_structured())
    throw std::runtime_error("the cluster's answer cannot be read: is it of another version?");
  return answer;
}

std::string flags_of(const connect_options& options) {
  std::string flags;
  if (!options.connect.empty()) flags += " --connect " + typed_word(options.connect);
  if (!options.key.empty()) flags += " --key " + typed_word(options.key);
  return flags;
}

/// What this frame says of a request; nothing if it is of another kind, or of another request.
template <message M>
std::optional<M> said_of(std::optional<frame>& from, std::uint64_t id) {
  if (!from || from->kind != M::kind) return std::nullopt;
  auto said = from_frame<M>(std::move(*from));
  return said && said->id == id ? std::move(said) : std::nullopt;
}

/// When to ask again for what was refused: when the head says, and only for as long as our patience lasts.
class retries {
 public:
  void note_begun() { next_ = never; }
  void note_answered() { give_up_ = never; }
  /// Throws if it is of no use, or too late, to ask again.
  void note_refused(const client_refused& why) {
    const auto now = steady::now();
    if (why.retry_after_ms == 0 || now > give_up_) fail(why);
    if (give_up_ == never) {
      write_error(fmt::format("troupe: {}: trying for up to {} s\n", why.error, patience.count()));
      give_up_ = now + patience;
    }
    next_ = now + std::chrono::milliseconds(std::min<std::uint64_t>(why.retry_after_ms, 5000));
  }

  bool is_waiting() const { return next_ != never; }
  bool is_due() const { return steady::now() >= next_; }

 private:
  static constexpr auto never = steady::time_point::max();
  steady::time_point next_ = never, give_up_ = never;
};

}  // namespace

void add_connect(CLI::App& command, connect_options& options) {
  command.add_option("--connect", options.connect, "the cluster's head [TROUPE_CONNECT, else tcp://127.0.0.1:7700]")
      ->type_name("ENDPOINT");
  command.add_option("--key", options.key, "a client's key file from troupe keygen [TROUPE_KEY]")->type_name("FILE");
}

class cluster_client::impl {
 public:
  impl(const connect_options& options, std::function<void()> check)
      : check_(std::move(check)),
        endpoint_(flag_or_variable(options.connect, "TROUPE_CONNECT", default_endpoint)),
        flags_(flags_of(options)) {
    bus::options own;
    const std::string key = options.ignores_environment ? options.key : flag_or_variable(options.key, "TROUPE_KEY", "");
    if (!key.empty()) own.keys = read_client_key(key);
    has_key_ = own.keys.has_value();
    server_key_ = own.keys ? own.keys->cluster_public_key : "";
    bus_ = std::make_unique<bus>(own, bus::events{[this](link_id, frame from) { keep(std::move(from)); },
                                                  [this](link_id, const link_end& end) { lose(end); }});
    link_ = bus_->connect(endpoint_, server_key_);
    meet();
  }

  template <message M>
  void send(M what, std::uint64_t correlation = 0) {
    frame made = to_frame(std::move(what));
    made.correlation = correlation;
    if (const auto most = frame_limits().body_bytes; made.body.size() > most)
      refuse("what is asked has {} bytes, and a cluster takes {} at once: shorten it", made.body.size(), most);
    if (bus_->send(link_, std::move(made)) == send_status::full)
      throw std::runtime_error(endpoint_ + ": takes nothing any more: try again later");
  }

  const std::string& flags() const { return flags_; }
  std::uint64_t next_number() { return ++last_number_; }
  /// Changes when another head answers, or the same one over a new link. What was sent before may be lost.
  std::uint64_t head() const { return head_; }

  /// What comes back for this number. `ask_again` is called when another head has come, which may not know of it.
  frame answer_to(std::uint64_t number, std::uint16_t kind, const std::function<void()>& ask_again) {
    for (std::uint64_t head = head_;;) {
      check_();
      auto got = next();
      if (got && got->kind == kind && got->correlation == number) return std::move(*got);
      if (std::exchange(head, head_) != head_) ask_again();
    }
  }
  /// The next frame that is no hello; nothing after a while without one. Looks after the connection meanwhile.
  std::optional<frame> next() {
    auto got = take(look_interval);
    if (!got) return look_after(), std::nullopt;
    silence_.heard();
    const bool is_hello = got->kind == command_answer::kind && got->correlation == hello_number_;
    if (!is_hello) {
      is_new_link_ = false;
      return got;
    }
    hello_number_ = 0;
    take_hello(from_frame<command_answer>(std::move(*got)));
    return {};
  }

 private:
  void keep(frame from) {
    const std::lock_guard lock(mutex_);
    frames_.push_back(std::move(from));
    changed_.notify_all();
  }
  void lose(const link_end& end) {
    const std::lock_guard lock(mutex_);
    lost_ = end;
    changed_.notify_all();
  }
  std::optional<frame> take(steady::duration longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [this] { return !frames_.empty() || lost_; });
    if (frames_.empty() && lost_) connect_again(*std::exchange(lost_, std::nullopt));
    if (frames_.empty()) return {};
    frame first = std::move(frames_.front());
    frames_.pop_front();
    return first;
  }

  /// A head that could not reach this client for a while has given its link up. Whoever is sent away again before
  /// anything was answered is not wanted.
  void connect_again(const link_end& end) {
    if (!end.is_goodbye || std::exchange(is_new_link_, true))
      throw std::runtime_error(end.why.starts_with(endpoint_) ? end.why : endpoint_ + ": " + end.why);
    link_ = bus_->connect(endpoint_, server_key_);
    ++head_;
    say_hello();
  }

  void meet() {
    const auto until = steady::now() + first_answer;
    say_hello();
    try {
      while (instance_.empty()) {
        check_();
        (void)next();
        if (!instance_.empty() || steady::now() < until) continue;
        throw std::runtime_error(fmt::format(
            "no cluster answers at {}{}: start one with troupe up or troupe serve, or name another with --connect",
            endpoint_, has_key_ ? ", or the key is another cluster's" : ""));
      }
    } catch (...) {
      bus_->close(link_);  // what still waits must not be sent later
      throw;
    }
  }
  void say_hello() {
    hello_number_ = next_number();
    hello_at_ = steady::now();
    send(client_command{"hello", "{}"}, hello_number_);
  }
  void take_hello(const std::optional<command_answer>& answer) {
    if (!answer) return;
    const auto said = nlohmann::json::parse(answer->result, nullptr, false);
    if (!said.is_object() || !said.contains("instance") || !said["instance"].is_string()) return;
    const auto instance = said["instance"].get<std::string>();
    if (instance != instance_) ++head_;
    instance_ = instance;
  }
  void look_after() {
    if (instance_.empty()) return;
    silence_.waited(look_interval);
    if (silence_.is_too_long())
      throw std::runtime_error(
          fmt::format("{}: has not answered for {} s: see whether it runs", endpoint_, patience.count()));
    if (silence_.is_worth_a_note()) write_error("troupe: " + endpoint_ + ": does not answer, waiting\n");
    if (silence_.is_odd() && steady::now() - hello_at_ > hello_interval) say_hello();
  }

  const std::function<void()> check_;
  std::string endpoint_, server_key_;
  const std::string flags_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<frame> frames_;
  std::optional<link_end> lost_;
  std::unique_ptr<bus> bus_;
  link_id link_ = no_link;
  std::string instance_;
  std::uint64_t last_number_ = 0, hello_number_ = 0, head_ = 0;
  steady::time_point hello_at_{};
  head_silence silence_;
  bool has_key_ = false;
  bool is_new_link_ = false;  ///< and nothing but a hello was answered on it
};

cluster_client::cluster_client(const connect_options& options, std::function<void()> check)
    : impl_(std::make_unique<impl>(options, std::move(check))) {}

cluster_client::~cluster_client() = default;

const std::string& cluster_client::flags() const {
  return impl_->flags();
}

nlohmann::ordered_json cluster_client::command(const std::string& name, const nlohmann::ordered_json& arguments,
                                               repeating may) {
  const client_command asked{name, arguments.is_null() ? "{}" : arguments.dump()};
  const std::uint64_t number = impl_->next_number();
  const auto send = [&] { impl_->send(asked, number); };
  const auto send_again = [&] {
    if (may == repeating::no)
      throw std::runtime_error(name + ": the head was lost before it answered: see what it has done");
    send();
  };
  send();
  auto answer = from_frame<command_answer>(impl_->answer_to(number, command_answer::kind, send_again));
  if (!answer) throw std::runtime_error(name + ": the cluster's answer cannot be read");
  if (answer->is_refused()) fail(*answer);
  return read_answer(answer->result);
}

std::optional<client_text> cluster_client::ask(client_request request,
                                               const std::function<void(const client_text&)>& on_part,
                                               const std::function<bool()>& is_stopped) {
  const auto begin = [&] {
    request.id = impl_->next_number();
    impl_->send(request);
  };
  begin();
  retries again;
  for (std::uint64_t head = impl_->head();;) {
    if (is_stopped()) return impl_->send(client_cancel{request.id}), std::nullopt;
    auto got = impl_->next();
    if (auto text = said_of<client_text>(got, request.id)) {
      request.skip_tokens += text->tokens.size();
      if (!text->adapter.empty()) request.adapter = text->adapter;  // a new head must go on with the same version
      again.note_answered();
      on_part(*text);
      if (!text->finish.empty()) return text;
    } else if (const auto refused = said_of<client_refused>(got, request.id)) {
      again.note_refused(*refused);
    }
    const bool is_new_head = impl_->head() != head;
    if (!is_new_head && !again.is_due()) continue;
    if (is_new_head && !again.is_waiting()) impl_->send(client_cancel{request.id});
    head = impl_->head();
    again.note_begun();
    begin();
  }
}

void cluster_client::fetch(const std::string& sha256, const adapter_file_info& file,
                           const std::function<void(std::span<const std::byte>)>& on_piece) {
  want_piece wanted{sha256, file.name, 0};
  while (wanted.offset < file.bytes) {
    const std::uint64_t number = impl_->next_number();
    const auto send = [&] { impl_->send(wanted, number); };
    send();
    const auto piece = from_frame<adapter_piece>(impl_->answer_to(number, adapter_piece::kind, send));
    if (!piece) throw std::runtime_error(file.name + ": the cluster's answer cannot be read");
    if (!piece->error.empty()) throw std::runtime_error(file.name + ": " + piece->error);
    if (piece->attachment.size() == 0 || piece->attachment.size() > file.bytes - wanted.offset)
      throw std::runtime_error(file.name + ": came with another length than the cluster said");
    on_piece(piece->attachment.bytes());
    wanted.offset += piece->attachment.size();
  }
}

}  // namespace troupe
