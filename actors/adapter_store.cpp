#include "actors/adapter_store.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "actors/commands.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

using fields = detail::json_fields<nlohmann::json>;

std::string text_of(const fields& arguments, std::string_view key) {
  const auto text = arguments.text(key);
  if (!text || text->empty()) refuse("{}: \"{}\" is missing", arguments.where(), key);
  return *text;
}

std::optional<std::uint32_t> ordinal_of(const fields& arguments) {
  const auto number = arguments.integer("version");
  if (number && (*number < 1 || *number > UINT32_MAX))
    refuse("{}: version {} is none: versions count from 1", arguments.where(), *number);
  return number ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

std::string to_json(const adapter_entry& entry) {
  return nlohmann::ordered_json{
      {"adapter", entry.full_name()}, {"state", name_of(entry.state)}, {"sha256", entry.spec.sha256}}
      .dump();
}

std::string to_json(const std::vector<adapter_entry>& entries) {
  auto names = nlohmann::ordered_json::array();
  for (const adapter_entry& entry : entries) names.push_back(entry.full_name());
  return nlohmann::ordered_json{{"unloaded", names}}.dump();
}

std::string to_json(const adapter_details& details) {
  auto files = nlohmann::ordered_json::array();
  for (const auto& file : details.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return nlohmann::ordered_json{{"adapter", details.full_name}, {"sha256", details.sha256}, {"files", files}}.dump();
}

}  // namespace

adapter_store_state::adapter_store_state(handle::pointer self, std::shared_ptr<adapter_shelf> shelf, jobs_actor journal,
                                         piece_sender send_piece, std::shared_ptr<adapter_directory> adapters,
                                         std::shared_ptr<status_board> board)
    : self_(self),
      shelf_(std::move(shelf)),
      journal_(std::move(journal)),
      send_piece_(std::move(send_piece)),
      adapters_(std::move(adapters)),
      board_(std::move(board)) {
  show(shelf_->snapshot(), shelf_->list_json());
}

adapter_store_state::handle::behavior_type adapter_store_state::make_behavior() {
  return {
      [this](command_call& call) { run(call); },
      [this](const incoming<want_piece>& wanted) {
        send_piece_(wanted.link, shelf_->read_piece(wanted.what), wanted.correlation);
      },
      [this](const find_adapter& wanted) { find(wanted); },
      [this](const catalogue_saved& saved) { take_saved(saved); },
      [this](stop_now) { self_->quit(); },
  };
}

void adapter_store_state::run(command_call& call) {
  command_answer answer = answer_of([&] { return carry_out(call.what); });
  save_then([answer = std::move(answer), tell_them = std::move(call.answer)](const std::string& error) mutable {
    if (answer.error.empty() && !error.empty()) answer = {{}, error, false};
    tell_them(std::move(answer));
  });
}

std::string adapter_store_state::carry_out(const client_command& command) {
  const nlohmann::json parsed = detail::parse_json(command.arguments, command.name);
  const fields arguments(parsed, command.name);
  if (command.name == "adapters.list") return shelf_->list_json();
  const std::string adapter = text_of(arguments, "name");
  if (command.name == "adapters.load") {
    const auto path = arguments.text("path");
    return to_json(path ? shelf_->publish(adapter, *path) : shelf_->load(adapter));
  }
  if (command.name == "adapters.unload") return to_json(shelf_->unload(adapter));
  if (command.name == "adapters.rollback") return to_json(shelf_->rollback(adapter, ordinal_of(arguments)));
  if (command.name == "adapters.files") return to_json(shelf_->details_of(adapter));
  refuse("{}: is no command: adapters.list, load, unload, rollback and files are", command.name);
}

void adapter_store_state::find(const find_adapter& wanted) {
  const command_answer found = answer_of([&] { return shelf_->find_or_publish(wanted.name).full_name(); });
  save_then([found, asker = wanted.asker, wanted_name = wanted.name](const std::string& error) {
    tell(asker, adapter_found{{}, wanted_name, found.error.empty() ? error : found.error});
  });
}

/// At once where nothing has changed and nothing is on its way.
void adapter_store_state::save_then(continuation then) {
  catalogue_records records = shelf_->take_changes();
  if (records.empty() && unsaved_.empty()) {
    // A version may have got its files back without a change in the catalogue.
    if (changes_.empty()) show(shelf_->snapshot(), shelf_->list_json());
    if (changes_.empty()) return then({});
    return changes_.rbegin()->second.then.push_back(std::move(then));
  }
  for (catalogue_records& older : unsaved_) {
    older.entries.insert(older.entries.end(), records.entries.begin(), records.entries.end());
    older.pointers.insert(older.pointers.end(), records.pointers.begin(), records.pointers.end());
    older.next_version = records.next_version;
    records = std::move(older);
  }
  unsaved_.clear();
  changes_[++ticket_] = {records, shelf_->snapshot(), shelf_->list_json(), {std::move(then)}};
  tell(journal_, save_catalogue{{}, ticket_, std::move(records), handle(self_)});
}

void adapter_store_state::take_saved(const catalogue_saved& saved) {
  auto done = changes_.extract(saved.ticket);
  if (!done) return;
  change& what = done.mapped();
  if (saved.error.empty())
    show(std::move(what.snapshot), std::move(what.list));
  else
    unsaved_.push_back(std::move(what.records));
  for (const continuation& then : what.then) then(saved.error);
}

void adapter_store_state::show(adapter_directory::snapshot now, std::string list) {
  adapters_->publish(std::move(now));
  board_->post("adapters", std::move(list));
}

adapter_store_actor spawn_adapter_store(caf::actor_system& system, const std::shared_ptr<adapter_shelf>& shelf,
                                        const jobs_actor& journal, const adapter_store_state::piece_sender& send_piece,
                                        const std::shared_ptr<adapter_directory>& adapters,
                                        const std::shared_ptr<status_board>& board) {
  return spawn_state<adapter_store_state, actor_thread::own>(system, shelf, journal, send_piece, adapters, board);
}

}  // namespace troupe
