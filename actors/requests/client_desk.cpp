#include "actors/requests/client_desk.hpp"

#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>

#include "actors/json_dump_impl.hpp"
#include "base/entropy.hpp"
#include "base/field_error.hpp"
#include "model/text/channels.hpp"
#include "model/text/thoughts.hpp"

namespace troupe {
namespace {

std::size_t bytes_of(const client_request& request) {
  return request.text.size() + request.messages.size() + request.tokens.size() * sizeof(token_id) +
         request.sampling.constraint.bytes();
}

prompt_input input_of(const client_request& request) {
  prompt_input input;
  input.tokens = request.tokens;
  if (!request.messages.empty()) input.chat = {.messages = request.messages};
  if (input.tokens.empty() && !input.chat) input.text = request.text;
  return input;
}

/// Sends the answers of one request over its link, on the gateway's thread. The desk hears of the end before the client
/// does, so that the client may use the id again at once.
class link_listener final : public answer_listener {
 public:
  link_listener(wire* links, const client_request_name& whose, std::int32_t answers, client_desk_actor desk)
      : links_(links), whose_(whose), left_(answers), desk_(std::move(desk)) {}

  void on_part(answer_part part) override {
    client_text text;
    text.id = whose_.id;
    text.index = part.index;
    text.text = std::move(part.text);
    text.tokens = std::move(part.tokens);
    text.details = std::move(part.details);
    text.adapter = std::move(part.adapter);
    if (part.end) {
      text.finish = part.end->finish;
      text.prompt_tokens = part.end->prompt_tokens;
      text.adapter = part.end->adapter;
      if (--left_ == 0) tell(desk_, client_done{whose_});
    }
    links_->send(whose_.link, std::move(text));
  }
  void on_refused(const request_refused& refused) override {
    tell(desk_, client_done{whose_});
    const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(refused.retry_after).count();
    links_->send(whose_.link, client_refused{.id = whose_.id,
                                             .error = refused.error,
                                             .bad_input = refused.cause == refusal_cause::bad_input,
                                             .retry_after_ms = static_cast<std::uint64_t>(milliseconds)});
  }

 private:
  wire* links_;
  client_request_name whose_;
  std::int32_t left_;
  client_desk_actor desk_;
};

/// For the gateway, or why not.
using read_request = std::variant<begin_request, client_refused>;

/// What reading needs, on any thread.
struct request_reader {
  wire* links;
  std::shared_ptr<const prompting> prompts;
  client_desk_actor desk;

  read_request read(const client_request& asked, const client_request_name& whose) const;
};

read_request request_reader::read(const client_request& asked, const client_request_name& whose) const try {
  const request_priority priority = asked.batch ? request_priority::batch : request_priority::interactive;
  const prompt_input input = input_of(asked);
  return begin_request{.id = whose.request,
                       .engine = prompts->prepare(input, asked.sampling, asked.answers, priority),
                       .adapter = asked.adapter,
                       .skip_tokens = asked.skip_tokens,
                       .skip_special = !prompts->shows_special(input),
                       .listener = std::make_shared<link_listener>(links, whose, asked.answers, desk)};
} catch (const field_error& error) {
  return client_refused{.error = error.what(), .bad_input = true, .field_name = error.field(), .code = error.code()};
} catch (const std::exception& error) {
  return client_refused{.error = error.what(), .bad_input = true};
}

class client_desk_state {
 public:
  using handle = client_desk_actor;
  static constexpr const char* name = "client_desk";

  client_desk_state(handle::pointer self, client_desk_parts parts);
  handle::behavior_type make_behavior();

 private:
  struct open_request {
    request_id id;
    std::shared_ptr<const client_request> unread = {};  ///< while it waits to be read
  };
  using requests_of_link = std::unordered_map<std::uint64_t, open_request>;  ///< by the client's own id

  void begin(incoming<client_request>& request);
  request_reader reader() const { return {parts_.links, parts_.prompts, handle(self_)}; }
  void read_later(const client_request_name& whose, client_request asked);
  void pass_on(const client_request_name& whose, read_request request);
  open_request* find(const client_request_name& whose);
  void cancel(link_id link, std::uint64_t id);
  void forget(const client_request_name& whose);
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
      [this](const client_done& done) { forget(done.whose); },
      [](const carry_on& order) { order.run(); },
      [this](const link_lost& lost) { end_all(lost.link); },
      [this](stop_now) {
        parts_.work->stop();
        self_->quit();
      },
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
  const client_request_name whose{request.link, asked.id, parts_.numbers->next()};
  open.emplace(asked.id, open_request{whose.request});
  const bool is_short = bytes_of(asked) <= longest_at_once && !asked.sampling.constraint;
  if (is_short)
    pass_on(whose, reader().read(asked, whose));
  else
    read_later(whose, std::move(request.message));
}

/// Other actors share this one's thread. What was cancelled before its turn comes is not read.
void client_desk_state::read_later(const client_request_name& whose, client_request asked) {
  const std::size_t bytes = bytes_of(asked);
  const auto unread = std::make_shared<const client_request>(std::move(asked));
  find(whose)->unread = unread;
  auto work = [this, by = reader(), whose, waiting = std::weak_ptr(unread)] {
    const auto wanted = waiting.lock();
    if (!wanted) return;
    const auto made = std::make_shared<read_request>(by.read(*wanted, whose));
    tell(by.desk, carry_on{[this, whose, made] { pass_on(whose, std::move(*made)); }});
  };
  if (!parts_.work->offer(bytes, std::move(work), std::to_string(whose.link.value)))
    pass_on(whose, client_refused{.error = "too many long requests at a time: wait for some", .retry_after_ms = 1000});
}

/// Unless it was cancelled meanwhile.
void client_desk_state::pass_on(const client_request_name& whose, read_request request) {
  open_request* const its = find(whose);
  if (!its) return;
  its->unread = nullptr;
  if (auto* const begun = std::get_if<begin_request>(&request)) return tell(parts_.gateway, std::move(*begun));
  forget(whose);
  auto& why = std::get<client_refused>(request);
  why.id = whose.id;
  parts_.links->send(whose.link, std::move(why));
}

/// Null where it has ended. Not another one that has the same id by now.
client_desk_state::open_request* client_desk_state::find(const client_request_name& whose) {
  const auto of_link = requests_.find(whose.link);
  if (of_link == requests_.end()) return nullptr;
  const auto its = of_link->second.find(whose.id);
  return its != of_link->second.end() && its->second.id == whose.request ? &its->second : nullptr;
}

void client_desk_state::refuse_request(link_id link, client_refused why) {
  parts_.links->send(link, std::move(why));
  if (requests_[link].empty()) requests_.erase(link);
}

void client_desk_state::cancel(link_id link, std::uint64_t id) {
  const auto found = requests_.find(link);
  if (found == requests_.end()) return;
  const auto request = found->second.extract(id);
  if (request) tell(parts_.gateway, end_request{request.mapped().id});
  if (found->second.empty()) requests_.erase(found);
}

void client_desk_state::forget(const client_request_name& whose) {
  if (!find(whose)) return;
  requests_of_link& open = requests_[whose.link];
  open.erase(whose.id);
  if (open.empty()) requests_.erase(whose.link);
}

void client_desk_state::end_all(link_id link) {
  const auto gone = requests_.extract(link);
  if (!gone) return;
  for (const auto& [id, request] : gone.mapped()) tell(parts_.gateway, end_request{request.id});
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
  answer(command,
         {.error = fmt::format("unknown command '{}': adapters.*, job.*, train.*, status, hello and drain are known",
                               name.substr(0, 64)),
          .fault = command_fault::bad_input});
}

void client_desk_state::answer(const incoming<client_command>& command, command_answer answer) {
  parts_.links->send(command.link, std::move(answer), command.correlation);
}

std::string client_desk_state::hello_json() const {
  const std::string& chat_template = parts_.prompts->tool_template();
  const thought_tags tags = special_tags_of(chat_template);
  return dump({{"cluster", parts_.cluster},
               {"instance", instance_},
               {"model", parts_.model},
               {"family", parts_.prompts->config().family},
               {"no_chat", parts_.prompts->no_chat()},
               {"has_channels", has_channels(chat_template)},
               {"thought_begin", tags.begin},
               {"thought_end", tags.end},
               {"answer_begin", tags.answer_begin},
               {"answer_end", tags.answer_end},
               {"context", parts_.prompts->context()}});
}

client_desk_actor spawn_client_desk(caf::actor_system& system, client_desk_parts parts) {
  return spawn_state<client_desk_state>(system, std::move(parts));
}

}  // namespace troupe
