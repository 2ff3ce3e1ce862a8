#include "cli/cluster/head_link.hpp"

#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/wire.hpp"
#include "base/error.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

using steady = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds first_answer = 3s, look_interval = 100ms, hello_interval = 1s;

}  // namespace

head_link::head_link(const connect_options& options, std::function<void()> check)
    : check_(std::move(check)), endpoint_(endpoint_of(options)), flags_(flags_of(options)) {
  bus::options own;
  if (const std::string key = key_of(options); !key.empty()) own.keys = read_client_key(key);
  has_key_ = own.keys.has_value();
  server_key_ = own.keys ? own.keys->cluster_public_key : "";
  bus_ = std::make_unique<bus>(own, bus::events{[this](link_id, frame from) { keep(std::move(from)); },
                                                [this](link_id, const link_end& end) { lose(end); }});
  link_ = bus_->connect(endpoint_, server_key_);
  meet();
}

void head_link::send(frame made, std::uint64_t correlation) {
  made.correlation = correlation;
  if (const auto most = frame_limits().body_bytes; made.body.size() > most)
    refuse("what is asked has {} bytes, and a cluster takes {} at once: shorten it", made.body.size(), most);
  if (bus_->send(link_, std::move(made)) == send_status::full)
    throw std::runtime_error(endpoint_ + ": takes nothing any more: try again later");
}

frame head_link::answer_to(std::uint64_t number, std::uint16_t kind, const std::function<void()>& ask_again) {
  for (std::uint64_t head = head_;;) {
    check_();
    auto got = next();
    if (got && got->kind == kind && got->correlation == number) return std::move(*got);
    if (std::exchange(head, head_) != head_) ask_again();
  }
}

std::optional<frame> head_link::next() {
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

void head_link::keep(frame from) {
  const std::lock_guard lock(mutex_);
  frames_.push_back(std::move(from));
  changed_.notify_all();
}

void head_link::lose(const link_end& end) {
  const std::lock_guard lock(mutex_);
  lost_ = end;
  changed_.notify_all();
}

std::optional<frame> head_link::take(duration longest) {
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
void head_link::connect_again(const link_end& end) {
  if (!end.is_goodbye || std::exchange(is_new_link_, true))
    throw std::runtime_error(end.why.starts_with(endpoint_) ? end.why : endpoint_ + ": " + end.why);
  link_ = bus_->connect(endpoint_, server_key_);
  ++head_;
  say_hello();
}

void head_link::meet() {
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

void head_link::say_hello() {
  hello_number_ = next_number();
  hello_at_ = steady::now();
  send(to_frame(client_command{"hello", "{}"}), hello_number_);
}

void head_link::take_hello(const std::optional<command_answer>& answer) {
  if (!answer) return;
  const auto said = nlohmann::json::parse(answer->result, nullptr, false);
  if (!said.is_object() || !said.contains("instance") || !said["instance"].is_string()) return;
  const auto instance = said["instance"].get<std::string>();
  if (instance != instance_) ++head_;
  instance_ = instance;
}

void head_link::look_after() {
  if (instance_.empty()) return;
  silence_.waited(look_interval);
  if (silence_.is_too_long())
    throw std::runtime_error(
        fmt::format("{}: has not answered for {} s: see whether it runs", endpoint_, head_silence::patience.count()));
  if (silence_.is_worth_a_note()) write_error("troupe: " + endpoint_ + ": does not answer, waiting\n");
  if (silence_.is_odd() && steady::now() - hello_at_ > hello_interval) say_hello();
}

}  // namespace troupe
