#include "actors/requests/client_desk.hpp"

#include <cstdint>
#include <unordered_map>

#include "actors/json_dump_impl.hpp"
#include "base/field_error.hpp"
#include "base/random_hex.hpp"
#include "model/engine/text/channels.hpp"

namespace troupe {
namespace {

constexpr std::string_view known_commands =
    "status, hello, adapters.list, adapters.load, adapters.unload, adapters.rollback, adapters.files, job.create, "
    "job.lines, job.seal, job.outputs, job.events, job.pause, job.resume, job.cancel, job.forget, job.list, job.get, "
    "train.data, train.create, drain";

prompt_input input_of(const client_request& request) {
  prompt_input input;
  input.tokens = request.tokens;
  input.messages = request.messages;
  if (input.tokens.empty() && input.messages.empty()) input.text = request.text;
  return input;
}

/// Sends the answers of one request over its link, on the gateway's thread. The desk hears of the end before the client
/// does, so that the client may use the id again at once.
class link_listener final : public answer_listener {
 public:
  link_listener(wire* links, const client_done& request, std::int32_t answers, client_desk_actor desk)
      : links_(links), request_(request), left_(answers), desk_(std::move(desk)) {}

  void on_part(answer_part part) override {
    client_text text;
    text.id = request_.id;
    text.index = part.index;
    text.text = std::move(part.text);
    text.tokens = std::move(part.tokens);
    text.details = std::move(part.details);
    text.adapter = std::move(part.adapter);
    if (part.end) {
      text.finish = part.end->finish;
      text.prompt_tokens = part.end->prompt_tokens;
      text.adapter = part.end->adapter;
      if (--left_ == 0) tell(desk_, request_);
    }
    links_->send(request_.link, std::move(text));
  }
  void on_refused(const request_refused& refused) override {
    tell(desk_, request_);
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(refused.retry_after).count();
    links_->send(request_.link, client_refused{.id = request_.id,
                                               .error = refused.error,
                                               .bad_input = refused.cause == refusal_cause::bad_input,
                                               .retry_after_ms = static_cast<std::uint64_t>(milliseconds)});
  }

 private:
  wire* links_;
  client_done request_;
  std::int32_t left_;
  client_desk_actor desk_;
};

class client_desk_state {
 public:
  using handle = client_desk_actor;
  static constexpr const char* name = "client_desk";

  client_desk_state(handle::pointer self, client_desk_parts parts);
  handle::behavior_type make_behavior();

 private:
  using requests_of_link = std::unordered_map<std::uint64_t, request_id>;  ///< by the client's own id

  void begin(incoming<client_request>& request);
  void cancel(link_id link, std::uint64_t id);
  void forget(const client_done& done);
  void end_all(link_id link);
  void refuse_request(link_id link, client_refused why);
  void run(incoming<client_command>& command);
  void answer(const incoming<client_command>& command, command_answer answer);
  std::string hello_json() const;

  handle::pointer self_;
  client_desk_parts parts_;
  std::string instance_;  ///< names this start of the head, so that clients notice a new one
  std::unordered_map<link_id, requests_of_link> requests_;
};

}  // namespace

client_desk_state::client_desk_state(handle::pointer self, client_desk_parts parts)
    : self_(self), parts_(std::move(parts)), instance_(random_hex(16)) {}

client_desk_state::handle::behavior_type client_desk_state::make_behavior() {
  return {
      [this](incoming<client_request>& request) { begin(request); },
      [this](const incoming<client_cancel>& cancelled) { cancel(cancelled.link, cancelled.message.id); },
      [this](incoming<client_command>& command) { run(command); },
      [this](const client_done& done) { forget(done); },
      [this](const link_lost& lost) { end_all(lost.link); },
      [this](stop_now) { self_->quit(); },
  };
}

// --- requests ---

void client_desk_state::begin(incoming<client_request>& request) {
  const client_request& asked = request.message;
  auto& open = requests_[request.link];
  const auto refuse_with = [&](client_refused why) {
    why.id = asked.id;
    refuse_request(request.link, std::move(why));
  };
  if (open.size() >= parts_.max_requests_each)
    return refuse_with({.error = "too many requests of one client at a time: wait for some", .retry_after_ms = 1000});
  if (asked.sampling.prompt_logprobs)
    return refuse_with({.error = "prompt_logprobs are not told here: ask for them over HTTP", .bad_input = true});
  if (open.contains(asked.id)) return refuse_with({.error = "the request's id is in use", .bad_input = true});
  try {
    const request_priority priority = asked.batch ? request_priority::batch : request_priority::interactive;
    const client_done its_end{request.link, asked.id, parts_.numbers->next()};
    begin_request begun{
        .id = its_end.request,
        .engine = parts_.prompts->prepare(input_of(asked), asked.sampling, asked.answers, priority),
        .adapter = asked.adapter,
        .skip_tokens = asked.skip_tokens,
        .skip_special = asked.messages.empty() || !has_channels(parts_.prompts->tool_template()),
        .listener = std::make_shared<link_listener>(parts_.links, its_end, asked.answers, handle(self_))};
    open.emplace(asked.id, begun.id);
    tell(parts_.gateway, std::move(begun));
  } catch (const field_error& error) {
    refuse_with({.error = error.what(), .bad_input = true, .field_name = error.field(), .code = error.code()});
  } catch (const std::exception& error) {
    refuse_with({.error = error.what(), .bad_input = true});
  }
}

void client_desk_state::refuse_request(link_id link, client_refused why) {
  parts_.links->send(link, std::move(why));
  if (requests_[link].empty()) requests_.erase(link);
}

void client_desk_state::cancel(link_id link, std::uint64_t id) {
  const auto found = requests_.find(link);
  if (found == requests_.end()) return;
  const auto request = found->second.extract(id);
  if (request) tell(parts_.gateway, end_request{request.mapped()});
  if (found->second.empty()) requests_.erase(found);
}

/// Not one that has the same id by now.
void client_desk_state::forget(const client_done& done) {
  const auto found = requests_.find(done.link);
  if (found == requests_.end()) return;
  requests_of_link& open = found->second;
  if (const auto its = open.find(done.id); its != open.end() && its->second == done.request) open.erase(its);
  if (open.empty()) requests_.erase(found);
}

void client_desk_state::end_all(link_id link) {
  const auto gone = requests_.extract(link);
  if (!gone) return;
  for (const auto& [id, request] : gone.mapped()) tell(parts_.gateway, end_request{request});
}

// --- commands ---

void client_desk_state::run(incoming<client_command>& command) {
  const std::string& name = command.message.name;
  if (name == "status")
    return answer(command, {"{" + parts_.board->json_of({"nodes", "replicas", "adapters", "jobs"}) + "}"});
  if (name == "hello") return answer(command, {hello_json()});
  const auto pass_to = [&](const auto& actor) {
    tell(actor, command_call{std::move(command.message),
                             [links = parts_.links, link = command.link, number = command.correlation](
                                 command_answer answer) { links->send(link, std::move(answer), number); }});
  };
  if (name.starts_with("adapters.")) return pass_to(parts_.store);
  if (name.starts_with("job.")) return pass_to(parts_.jobs);
  if (name.starts_with("train.")) return pass_to(parts_.training);
  if (name == "drain") return pass_to(parts_.supervisor);
  answer(command, {.error = fmt::format("unknown command '{}': {} are known", name.substr(0, 64), known_commands),
                   .fault = command_fault::bad_input});
}

void client_desk_state::answer(const incoming<client_command>& command, command_answer answer) {
  parts_.links->send(command.link, std::move(answer), command.correlation);
}

std::string client_desk_state::hello_json() const {
  return dump({{"cluster", parts_.cluster},
               {"instance", instance_},
               {"family", parts_.prompts->config().family},
               {"no_chat", parts_.prompts->no_chat()},
               {"has_channels", has_channels(parts_.prompts->tool_template())},
               {"context", parts_.prompts->context()}});
}

client_desk_actor spawn_client_desk(caf::actor_system& system, client_desk_parts parts) {
  return spawn_state<client_desk_state>(system, std::move(parts));
}

}  // namespace troupe
