#include "cli/cluster/cluster_client.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/wire.hpp"
#include "base/error.hpp"
#include "base/field_error.hpp"
#include "cli/cluster/head_link.hpp"
#include "cli/output.hpp"

namespace troupe {
namespace {

using steady = std::chrono::steady_clock;

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
      write_error(fmt::format("troupe: {}: trying for up to {} s\n", why.error, head_silence::patience.count()));
      give_up_ = now + head_silence::patience;
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

cluster_client::cluster_client(const connect_options& options, std::function<void()> check)
    : link_(std::make_unique<head_link>(options, std::move(check))) {}

cluster_client::~cluster_client() = default;

const std::string& cluster_client::flags() const {
  return link_->flags();
}

nlohmann::ordered_json cluster_client::command(const std::string& name, const nlohmann::ordered_json& arguments,
                                               repeating may) {
  const client_command asked{name, arguments.is_null() ? "{}" : arguments.dump()};
  const std::uint64_t number = link_->next_number();
  const auto send = [&] { link_->send(to_frame(asked), number); };
  const auto send_again = [&] {
    if (may == repeating::no)
      throw std::runtime_error(name + ": the head was lost before it answered: see what it has done");
    send();
  };
  send();
  auto answer = from_frame<command_answer>(link_->answer_to(number, command_answer::kind, send_again));
  if (!answer) throw std::runtime_error(name + ": the cluster's answer cannot be read");
  if (answer->is_refused()) fail(*answer);
  return read_answer(answer->result);
}

std::optional<client_text> cluster_client::ask(client_request request,
                                               const std::function<void(const client_text&)>& on_part,
                                               const std::function<bool()>& is_stopped) {
  const auto begin = [&] {
    request.id = link_->next_number();
    link_->send(to_frame(request));
  };
  begin();
  retries again;
  for (std::uint64_t head = link_->head();;) {
    if (is_stopped()) return link_->send(to_frame(client_cancel{request.id})), std::nullopt;
    auto got = link_->next();
    if (auto text = said_of<client_text>(got, request.id)) {
      request.skip_tokens += text->tokens.size();
      if (!text->adapter.empty()) request.adapter = text->adapter;  // a new head must go on with the same version
      again.note_answered();
      on_part(*text);
      if (!text->finish.empty()) return text;
    } else if (const auto refused = said_of<client_refused>(got, request.id)) {
      again.note_refused(*refused);
    }
    const bool is_new_head = link_->head() != head;
    if (!is_new_head && !again.is_due()) continue;
    if (is_new_head && !again.is_waiting()) link_->send(to_frame(client_cancel{request.id}));
    head = link_->head();
    again.note_begun();
    begin();
  }
}

void cluster_client::fetch(const std::string& sha256, const adapter_file_info& file,
                           const std::function<void(std::span<const std::byte>)>& on_piece) {
  want_piece wanted{sha256, file.name, 0};
  while (wanted.offset < file.bytes) {
    const std::uint64_t number = link_->next_number();
    const auto send = [&] { link_->send(to_frame(wanted), number); };
    send();
    const auto piece = from_frame<adapter_piece>(link_->answer_to(number, adapter_piece::kind, send));
    if (!piece) throw std::runtime_error(file.name + ": the cluster's answer cannot be read");
    if (!piece->error.empty()) throw std::runtime_error(file.name + ": " + piece->error);
    if (piece->attachment.size() == 0 || piece->attachment.size() > file.bytes - wanted.offset)
      throw std::runtime_error(file.name + ": came with another length than the cluster said");
    on_piece(piece->attachment.bytes());
    wanted.offset += piece->attachment.size();
  }
}

}  // namespace troupe
