#include "tests/integration/played_head.hpp"

#include <chrono>
#include <stdexcept>

#include "actors/command_answers.hpp"

namespace troupe::test {
namespace {

bus::options at_loopback() {
  bus::options options;
  options.listen = "tcp://127.0.0.1:0";
  return options;
}

}  // namespace

played_head::played_head(answering answers) : answers_(std::move(answers)), links_(at_loopback()) {
  links_.on<client_command>([this](const incoming<client_command>& in) { take(in); });
  links_.on<client_cancel>([](const incoming<client_cancel>&) {});
  links_.on<client_request>([this](incoming<client_request> in) {
    const std::lock_guard lock(mutex_);
    link_ = in.link;
    asked_.push_back(std::move(in.message));
    changed_.notify_all();
  });
  links_.start();
}

void played_head::take(const incoming<client_command>& in) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(in.message);
  const command_answer answer = answer_of([&] {
    const bool is_hello = in.message.name == "hello";
    return (is_hello ? hello_ : answers_(in.message)).dump();
  });
  links_.send(in.link, answer, in.correlation);
}

client_request played_head::asked() {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, std::chrono::seconds(20), [this] { return !asked_.empty(); }))
    throw std::runtime_error("nothing was asked");
  client_request first = std::move(asked_.front());
  asked_.pop_front();
  return first;
}

void played_head::say(client_text what) {
  const std::lock_guard lock(mutex_);
  links_.send(link_, std::move(what));
}

client_request played_head::answer(const std::string& text) {
  client_request next = asked();
  say({next.id, 0, text, {1}, {}, "stop", 1, next.adapter});
  return next;
}

std::vector<nlohmann::ordered_json> played_head::commanded(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<nlohmann::ordered_json> all;
  for (const client_command& each : commands_)
    if (each.name == name) all.push_back(nlohmann::ordered_json::parse(each.arguments));
  return all;
}

void played_head::say_in_hello(const nlohmann::ordered_json& more) {
  const std::lock_guard lock(mutex_);
  hello_.update(more);
}

void played_head::give_link_up() {
  const std::lock_guard lock(mutex_);
  links_.close(link_);
}

void played_head::come_again() {
  const std::lock_guard lock(mutex_);
  hello_["instance"] = "second";
}

}  // namespace troupe::test
