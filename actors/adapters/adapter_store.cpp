#include "actors/adapters/adapter_store.hpp"

#include <cassert>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "actors/command_answers.hpp"
#include "actors/command_fields_impl.hpp"

namespace troupe {
namespace {

std::optional<std::uint32_t> ordinal_of(const command_fields& arguments) {
  const auto number = arguments.integer("version");
  if (number && (*number < 1 || *number > UINT32_MAX))
    refuse("{}: version {} is none: versions count from 1", arguments.where(), *number);
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

std::string to_json(const adapter_entry& entry) {
  return dump({{"adapter", entry.full_name()}, {"state", name_of(entry.state)}, {"sha256", entry.spec.sha256}});
}

std::string to_json(const std::vector<adapter_entry>& entries) {
  json names = json::array();
  for (const adapter_entry& entry : entries) names.push_back(entry.full_name());
  return dump({{"unloaded", names}});
}

std::string to_json(const adapter_details& details) {
  json files = json::array();
  for (const auto& file : details.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return dump({{"adapter", details.full_name}, {"sha256", details.sha256}, {"files", files}});
}

/// For the operator: what becomes of versions, and of what names mean.
std::vector<std::string> news_of(const catalogue_records& changes) {
  std::vector<std::string> news;
  for (const adapter_entry& entry : changes.entries)
    news.push_back(fmt::format("adapter {}: is {}", entry.full_name(), name_of(entry.state)));
  for (const adapter_pointer& pointer : changes.pointers)
    news.push_back(pointer.current == 0
                       ? fmt::format("adapter {}: no version answers", pointer.name)
                       : fmt::format("adapter {}: {}@{} answers", pointer.name, pointer.name, pointer.current));
  return news;
}

class adapter_store_state {
 public:
  using handle = adapter_store_actor;
  static constexpr const char* name = "adapter_store";

  adapter_store_state(handle::pointer self, adapter_store_parts parts);
  handle::behavior_type make_behavior();

 private:
  /// Called when the journal has a change, or has refused it.
  using continuation = std::function<void(const std::optional<command_answer>& refusal)>;
  using journal_use = std::function<void(journal&)>;
  struct change {
    std::uint64_t ticket = 0;
    adapter_directory::snapshot snapshot;
    adapter_shelf::summary shown;
    std::vector<std::string> news;
    std::vector<continuation> then;
    bool is_alone = false;  ///< what comes meanwhile waits
  };
  struct turn {
    std::function<void()> work;
    bool is_alone = false;
  };

  /// A version that workers are fetching.
  struct spreading {
    std::string name;
    std::size_t missing = 0;
    instant until;
    std::function<void()> then;
  };

  void run(const command_call& call);
  void load(const command_call& call);
  void publish(const publish_adapter& asked);
  void make_version(const adapter_shelf::candidate& copy, const publish_adapter& asked);
  void in_turn(std::function<void()> work, bool alone = false);
  void take_turns();
  void spread(const adapter_shelf::candidate& adapter, std::function<void()> then);
  void take_prepared(const adapter_prepared& prepared);
  void end_overdue();
  void finish(command_answer answer, std::function<void(command_answer)> tell_asker, journal_use together_with = {});
  std::string carry_out(const client_command& command);
  void find(const find_adapter& wanted);
  bool is_used(adapter_version version) const;
  void save_then(continuation then, journal_use together_with = {});
  void save_changes(journal_use together_with = {});
  void take_saved(const catalogue_saved& saved);
  void show_files_that_came_back();
  void show(adapter_directory::snapshot published, const adapter_shelf::summary& shown);

  handle::pointer self_;
  adapter_store_parts parts_;
  std::optional<change> saving_;                  ///< what the journal is writing
  std::vector<continuation> next_;                ///< what follows when the changes after that are written
  std::deque<turn> turns_;                        ///< what waits for what is being saved
  std::map<std::uint64_t, spreading> spreading_;  ///< by ticket
  std::uint64_t ticket_ = 0;
  actor_clock clock_{self_};
};

}  // namespace

adapter_store_state::adapter_store_state(handle::pointer self, adapter_store_parts parts)
    : self_(self), parts_(std::move(parts)) {
  (void)parts_.shelf->take_files_came_back();
  for (const std::string& name : parts_.shelf->hidden_by_base())
    parts_.say(
        fmt::format("adapter {0}: the base is called so too, and answers to it: call the adapter base:{0}, or "
                    "publish it under another name",
                    name));
  show(parts_.shelf->snapshot(), parts_.shelf->shown());
}

adapter_store_state::handle::behavior_type adapter_store_state::make_behavior() {
  return {
      [this](const command_call& call) { in_turn([this, call] { run(call); }); },
      [this](const incoming<want_piece>& wanted) {
        parts_.links->send(wanted.link, parts_.shelf->read_piece(wanted.message), wanted.correlation);
      },
      [this](const find_adapter& wanted) { in_turn([this, wanted] { find(wanted); }); },
      [this](const publish_adapter& asked) { publish(asked); },
      [this](const catalogue_saved& saved) { take_saved(saved); },
      [this](const adapter_prepared& prepared) { take_prepared(prepared); },
      [this](wake) { end_overdue(); },
      [this](stop_now) { self_->quit(); },
  };
}

void adapter_store_state::run(const command_call& call) {
  if (call.command.name == "adapters.load") return load(call);
  finish(answer_of([&] { return carry_out(call.command); }), call.answer);
}

/// Answers once the journal has what the answer says. `together_with`: what else it is to have then, or neither.
void adapter_store_state::finish(command_answer answer, std::function<void(command_answer)> tell_asker,
                                 journal_use together_with) {
  auto tell_outcome = [answer = std::move(answer), tell_asker = std::move(tell_asker)](const auto& refusal) {
    tell_asker(refusal && !answer.is_refused() ? *refusal : answer);
  };
  save_then(std::move(tell_outcome), std::move(together_with));
}

/// A folder that is named, or found under the adapter's name, is published; otherwise a version is loaded again.
void adapter_store_state::load(const command_call& call) {
  std::optional<adapter_shelf::candidate> copy;
  command_answer answer = answer_of([&] {
    const command_fields arguments(call.command.arguments, call.command.name);
    const std::string adapter = arguments.required_text("name");
    const auto path = arguments.text("path");
    // The system would take it for what stands before that.
    if (path && path->find('\0') != path->npos) refuse("the folder's path has a NUL character, which no path can have");
    const auto folder = path ? std::optional<std::filesystem::path>(*path) : parts_.shelf->source_of(adapter);
    if (!folder) return to_json(parts_.shelf->load(adapter));
    copy = parts_.shelf->copy_in(adapter, *folder);
    return std::string();
  });
  if (!copy) return finish(std::move(answer), call.answer);
  spread(*copy, [this, copy = *copy, tell_asker = call.answer] {
    in_turn([this, copy, tell_asker] {
      finish(answer_of([&] { return to_json(parts_.shelf->publish(copy)); }), tell_asker);
    });
  });
}

void adapter_store_state::publish(const publish_adapter& asked) {
  adapter_shelf::candidate copy;
  if (const auto refusal = refusal_of([&] { copy = parts_.shelf->copy_in(asked.name, asked.folder); }))
    return asked.answer({.error = refusal->error, .fault = refusal->fault});
  spread(copy, [this, copy, asked] {
    in_turn([this, copy, asked] { make_version(copy, asked); }, static_cast<bool>(asked.write_with_it));
  });
}

void adapter_store_state::make_version(const adapter_shelf::candidate& copy, const publish_adapter& asked) {
  journal_use together_with;
  command_answer made = answer_of([&] {
    if (!asked.is_wanted()) {
      parts_.shelf->give_up(copy);
      refuse("{}: nobody wants it any more", copy.name);
    }
    const std::string version = parts_.shelf->publish(copy).full_name();
    if (asked.write_with_it)
      together_with = [write = asked.write_with_it, version](journal& book) { write(book, version); };
    return version;
  });
  const auto tell_asker = [answer = asked.answer](const command_answer& outcome) {
    answer({.full_name = outcome.result, .error = outcome.error, .fault = outcome.fault});
  };
  finish(std::move(made), tell_asker, std::move(together_with));
}

/// A version that something else is written with may be refused by that. It is saved alone, so that nobody else's
/// changes are taken back with it; what would change the catalogue meanwhile waits.
void adapter_store_state::in_turn(std::function<void()> work, bool alone) {
  turns_.push_back({std::move(work), alone});
  take_turns();
}

void adapter_store_state::take_turns() {
  while (!turns_.empty() && !(saving_ && (saving_->is_alone || turns_.front().is_alone))) {
    const auto work = std::move(turns_.front().work);
    turns_.pop_front();
    work();
  }
}

/// Tells all workers; each fetches the files from here at its own pace.
void adapter_store_state::spread(const adapter_shelf::candidate& adapter, std::function<void()> then) {
  const auto all = adapter.is_new ? parts_.directory->workers() : std::vector<worker_actor>();
  if (all.empty()) return then();
  spreading_[++ticket_] = {adapter.name, all.size(), clock_.now() + parts_.longest_spread, std::move(then)};
  for (const worker_actor& worker : all)
    tell(worker, prepare_adapter{ticket_, adapter.name, adapter.sha256, adapter.files});
  tell_after(self_, parts_.longest_spread, wake{});
}

/// An error of one worker (a full disk, say) does not stop the publication: the worker tries again when a request needs
/// the adapter. Errors of the adapter itself were found earlier, here.
void adapter_store_state::take_prepared(const adapter_prepared& prepared) {
  const auto found = spreading_.find(prepared.ticket);
  if (found == spreading_.end()) return;
  if (!prepared.error.empty())
    parts_.say(fmt::format("adapter {}: not every node can load it yet: {}", found->second.name, prepared.error));
  if (--found->second.missing > 0) return;
  spreading_.extract(found).mapped().then();
}

/// A worker that has not answered was lost, or loads the adapter when a request needs it.
void adapter_store_state::end_overdue() {
  const instant now = clock_.now();
  std::vector<std::function<void()>> due;
  std::erase_if(spreading_, [&](auto& each) {
    if (each.second.until > now) return false;
    due.push_back(std::move(each.second.then));
    return true;
  });
  for (const auto& then : due) then();
}

std::string adapter_store_state::carry_out(const client_command& command) {
  const command_fields arguments(command.arguments, command.name);
  if (command.name == "adapters.list") return parts_.shelf->list_json(arguments.text("after").value_or(""));
  const std::string adapter = arguments.required_text("name");
  if (command.name == "adapters.unload") return to_json(parts_.shelf->unload(adapter));
  if (command.name == "adapters.rollback") return to_json(parts_.shelf->rollback(adapter, ordinal_of(arguments)));
  if (command.name == "adapters.files") return to_json(parts_.shelf->details_of(adapter));
  refuse("{}: is no command: adapters.list, load, unload, rollback and files are", command.name);
}

void adapter_store_state::find(const find_adapter& wanted) {
  const command_answer found = answer_of([&] { return parts_.shelf->find_or_publish(wanted.name).full_name(); });
  save_then([found, asker = wanted.asker, wanted_name = wanted.name](const auto& refusal) {
    const command_answer& answer = refusal && !found.is_refused() ? *refusal : found;
    tell(asker, adapter_found{wanted_name, answer.error, answer.fault == command_fault::unknown,
                              answer.fault == command_fault::failed});
  });
}

/// By a request, or perhaps by one that comes yet: until an unloading is published, the name still leads to the
/// version.
bool adapter_store_state::is_used(adapter_version version) const {
  if (parts_.adapters->is_held(version)) return true;
  const auto shown = parts_.adapters->find(version);
  return shown && parts_.adapters->resolve(shown->full_name) == version;
}

/// Calls `then` at once if nothing has changed and nothing is being saved. `together_with` comes in a turn of its own,
/// in which nothing is.
void adapter_store_state::save_then(continuation then, journal_use together_with) {
  assert(!saving_ || !together_with);
  next_.push_back(std::move(then));
  if (!saving_) save_changes(std::move(together_with));
}

/// Files are removed only when the journal has all changes: otherwise, if the head died in between, there would be
/// versions without files.
void adapter_store_state::save_changes(journal_use together_with) {
  parts_.shelf->forget_unloaded([this](adapter_version version) { return is_used(version); });
  auto then = std::exchange(next_, {});
  catalogue_records changes = parts_.shelf->take_changes();
  if (!changes.empty() || together_with) {
    saving_ = change{.ticket = ++ticket_,
                     .snapshot = parts_.shelf->snapshot(),
                     .shown = parts_.shelf->shown(),
                     .news = news_of(changes),
                     .then = std::move(then),
                     .is_alone = static_cast<bool>(together_with)};
    return tell(parts_.jobs, save_catalogue{ticket_, std::move(changes), handle(self_), std::move(together_with)});
  }
  show_files_that_came_back();
  parts_.shelf->remove_unused_files();
  for (const continuation& each : then) each({});
}

/// What the journal could not write has not happened, and neither has what was to be written after it: an error means
/// that nothing has changed.
void adapter_store_state::take_saved(const catalogue_saved& saved) {
  if (!saving_ || saving_->ticket != saved.ticket) return;
  change written = *std::exchange(saving_, std::nullopt);
  if (!saved.refusal) {
    parts_.shelf->keep_changes();
    show(std::move(written.snapshot), written.shown);
    for (const std::string& line : written.news) parts_.say(line);
  } else {
    parts_.shelf->drop_changes();
    std::move(next_.begin(), next_.end(), std::back_inserter(written.then));
    next_.clear();
  }
  if (next_.empty()) parts_.shelf->remove_unused_files();
  for (const continuation& then : written.then) then(saved.refusal);
  if (!next_.empty()) save_changes();
  take_turns();
}

/// Files that came back change nothing in the catalogue, so they are shown without the journal.
void adapter_store_state::show_files_that_came_back() {
  if (parts_.shelf->take_files_came_back()) show(parts_.shelf->snapshot(), parts_.shelf->shown());
}

void adapter_store_state::show(adapter_directory::snapshot published, const adapter_shelf::summary& shown) {
  parts_.adapters->publish(std::move(published));
  parts_.board->post("adapters", shown.list);
  parts_.board->post("adapters.others", std::to_string(shown.others));
}

adapter_store_actor spawn_adapter_store(caf::actor_system& system, adapter_store_parts parts) {
  return spawn_state<adapter_store_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
