#include "tests/integration/streams.hpp"

#include <algorithm>

#include "tests/integration/process.hpp"

namespace troupe::test {

using steady = std::chrono::steady_clock;

streams::streams(const std::string& endpoint, const std::optional<curve_keys>& keys) {
  bus::options options;
  options.keys = keys;
  bus_ = std::make_unique<bus>(options, bus::events{[this](link_id, frame from) { take(std::move(from)); },
                                                    [this](link_id, const link_end& end) {
                                                      const std::lock_guard lock(mutex_);
                                                      faults_.push_back("link closed: " + end.why);
                                                    }});
  link_ = bus_->connect(endpoint, keys ? keys->cluster_public_key : std::string());
}

std::uint64_t streams::begin(client_request request) {
  {
    const std::lock_guard lock(mutex_);
    request.id = ++last_id_;
    heard_ = steady::now();
    for (std::int32_t i = 0; i < request.answers; ++i) answers_[{request.id, i}] = {};
  }
  bus_->send(link_, to_frame(request));
  return request.id;
}

void streams::cancel(std::uint64_t id) {
  bus_->send(link_, to_frame(client_cancel{id}));
  const std::lock_guard lock(mutex_);
  std::erase_if(answers_, [id](const auto& each) { return each.first.first == id; });
}

void streams::take(frame from) {
  if (from.kind == client_text::kind) {
    if (const auto text = from_frame<client_text>(std::move(from))) take_text(*text);
  } else if (from.kind == client_refused::kind) {
    const auto refused = from_frame<client_refused>(std::move(from));
    const std::lock_guard lock(mutex_);
    for (auto& [key, answer] : answers_)
      if (key.first == refused->id && !answer.ended) answer.ended = true;
    faults_.push_back("request " + std::to_string(refused->id) + " was refused: " + refused->error);
  }
}

void streams::take_text(const client_text& text) {
  const std::lock_guard lock(mutex_);
  note_time();
  const auto found = answers_.find({text.id, text.index});
  if (found == answers_.end()) return;  // cancelled
  state& answer = found->second;
  if (answer.ended) faults_.push_back("request " + std::to_string(text.id) + " went on after its end");
  answer.tokens.insert(answer.tokens.end(), text.tokens.begin(), text.tokens.end());
  answer.ended = !text.finish.empty();
  answer.version = text.adapter;
}

void streams::note_time() {
  const auto now = steady::now();
  silence_ = std::max(silence_, std::chrono::duration_cast<std::chrono::milliseconds>(now - heard_));
  heard_ = now;
}

bool streams::finished() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(answers_.begin(), answers_.end(), [](const auto& each) { return each.second.ended; });
}

bool streams::finish(std::chrono::seconds longest) {
  return wait_until([this] { return finished(); }, longest);
}

std::size_t streams::tokens() const {
  const std::lock_guard lock(mutex_);
  std::size_t all = 0;
  for (const auto& [key, answer] : answers_) all += answer.tokens.size();
  return all;
}

std::size_t streams::tokens_of(std::uint64_t id) const {
  return answer(id).size();
}

std::vector<token_id> streams::answer(std::uint64_t id, std::int32_t index) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find({id, index});
  return found == answers_.end() ? std::vector<token_id>() : found->second.tokens;
}

std::string streams::version_of(std::uint64_t id, std::int32_t index) const {
  const std::lock_guard lock(mutex_);
  const auto found = answers_.find({id, index});
  return found == answers_.end() ? std::string() : found->second.version;
}

std::vector<std::string> streams::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

std::chrono::milliseconds streams::longest_silence() const {
  const std::lock_guard lock(mutex_);
  return silence_;
}

}  // namespace troupe::test
