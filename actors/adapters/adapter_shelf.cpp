#include "actors/adapters/adapter_shelf.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "actors/adapters/adapter_files.hpp"
#include "actors/command_answers.hpp"
#include "actors/file_pieces.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "model/lora/adapter.hpp"
#include "model/lora/adapter_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Its bytes in memory; nothing where it does not fit the model.
std::optional<std::uint64_t> bytes_beside(const model_config& model, const std::string& quantization,
                                          const fs::path& folder) {
  try {
    return lora_adapter::packed_bytes(read_adapter(folder, model), precision_beside(quantization));
  } catch (const input_error&) {
    return std::nullopt;
  }
}

/// Seconds since 1970; 0 where that is not known.
std::int64_t written_at(const fs::path& file) {
  std::error_code fault;
  const auto time = fs::last_write_time(file, fault);
  if (fault) return 0;
  return std::chrono::floor<std::chrono::seconds>(std::chrono::file_clock::to_sys(time)).time_since_epoch().count();
}

}  // namespace

adapter_shelf::adapter_shelf(options chosen, catalogue_records saved)
    : options_(std::move(chosen)),
      catalogue_({options_.base_name, options_.base}, std::move(saved)),
      saved_(catalogue_),
      being_saved_(catalogue_) {
  make_private_folder(options_.store);
  remove_incoming_adapters(options_.store);
  look_for_unused_folders();
  for (const adapter_entry& entry : catalogue_.list()) note_files(entry);
  saved_ = catalogue_;
}

catalogue_records adapter_shelf::take_changes() {
  catalogue_records changes = catalogue_.take_changes();
  if (!changes.empty()) being_saved_ = catalogue_;
  return changes;
}

void adapter_shelf::keep_changes() {
  saved_ = being_saved_;
}

void adapter_shelf::drop_changes() {
  catalogue_ = being_saved_ = saved_;
  const auto is_gone = [this](const auto& each) { return catalogue_.find(each.first) == nullptr; };
  std::erase_if(details_, is_gone);
  std::erase_if(faults_, is_gone);
  for (const adapter_entry& entry : catalogue_.list())
    if (!faults_.contains(entry.version)) note_files(entry);
}

/// An earlier head may have died before its journal had the version. What a worker of this machine has fetched is
/// marked, and it is the worker that removes it.
void adapter_shelf::look_for_unused_folders() {
  std::error_code fault;
  for (const fs::path& folder : entries_of(options_.store))
    if (is_sha256(folder.filename().string()) && !fs::exists(folder / fetched_mark, fault))
      perhaps_unused_.insert(folder.filename().string());
}

const std::string& adapter_shelf::note_files(const adapter_entry& entry) {
  return faults_[entry.version] = take_up_files(entry);
}

/// A base's id is its fingerprint, which differs if the same model is quantized differently. So an adapter made for
/// another base is accepted if it fits this one.
std::string adapter_shelf::take_up_files(const adapter_entry& entry) {
  auto files = adapter_files_in(folder_of(entry.spec.sha256));
  if (files.empty()) return "its files are gone: publish the folder again";
  std::uint64_t bytes = entry.spec.bytes;
  if (entry.spec.base != options_.base) {
    const auto here = bytes_beside(options_.model, options_.quantization, folder_of(entry.spec.sha256));
    if (!here) return "was made for another model: publish one that was made for this model";
    bytes = *here;
    catalogue_.set_fits(entry.version, bytes);
  }
  std::error_code ignored;  // a worker on this machine may have fetched them earlier; now the head owns them
  fs::remove(folder_of(entry.spec.sha256) / fetched_mark, ignored);
  files_came_back_ = files_came_back_ || !details_.contains(entry.version);
  details_[entry.version] = {.full_name = entry.full_name(),
                             .sha256 = entry.spec.sha256,
                             .files = std::move(files),
                             .bytes = static_cast<std::int64_t>(bytes),
                             .created = written_at(folder_of(entry.spec.sha256) / adapter_config_name)};
  return {};
}

adapter_shelf::candidate adapter_shelf::copy_in(const std::string& name, const fs::path& source) {
  if (const auto wrong = catalogue_.check_name(name)) refuse_by(*wrong);
  candidate copy = checked_copy(source);
  copy.name = name;
  copy.files = adapter_files_in(folder_of(copy.sha256));
  copy.is_new = std::none_of(details_.begin(), details_.end(),
                             [&](const auto& each) { return each.second.sha256 == copy.sha256; });
  candidates_.insert(copy.sha256);
  return copy;
}

void adapter_shelf::give_up(const candidate& copy) {
  if (const auto found = candidates_.find(copy.sha256); found != candidates_.end()) candidates_.erase(found);
  perhaps_unused_.insert(copy.sha256);
}

adapter_entry adapter_shelf::publish(const candidate& copy) {
  adapter_entry added = add_version(copy);
  if (catalogue_.is_current(added)) return added;
  return value_of(catalogue_.rollback(copy.name, added.ordinal));
}

adapter_entry adapter_shelf::add_version(const candidate& copy) {
  give_up(copy);  // unless it becomes a version below
  const adapter_entry* last = catalogue_.newest(copy.name);
  // An unloaded version with the same contents comes back under its old number.
  if (last && last->spec.sha256 == copy.sha256 && last->state == adapter_state::unloaded)
    return make_ready(value_of(catalogue_.load(last->full_name())));
  return make_ready(value_of(catalogue_.publish(
      {.name = copy.name, .sha256 = copy.sha256, .bytes = copy.bytes, .rank = copy.rank, .base = options_.base})));
}

adapter_shelf::candidate adapter_shelf::checked_copy(const fs::path& source) {
  incoming_adapter incoming(options_.store, ++incoming_);
  candidate copy;
  copy.sha256 = incoming.copy_from(source, options_.model);
  const adapter_file read = read_adapter_as(source, incoming.path(), options_.model);
  copy.bytes = lora_adapter::packed_bytes(read, precision_beside(options_.quantization));
  for (const adapter_part& part : read.parts) copy.rank = std::max(copy.rank, static_cast<std::uint32_t>(part.rank));
  check_fits(copy.bytes, source.string());
  if (adapter_files_in(folder_of(copy.sha256)).empty()) {
    std::error_code ignored;
    fs::remove_all(folder_of(copy.sha256), ignored);
    incoming.keep_as(folder_of(copy.sha256));
  }
  return copy;
}

/// Refuses adapters that workers could never load: each request would be refused.
void adapter_shelf::check_fits(std::uint64_t bytes, const std::string& whose) const {
  if (bytes > options_.memory)
    refuse("{}: has {} bytes in memory, more than adapters.memory ({}): raise that, or take a lower rank", whose, bytes,
           options_.memory);
}

adapter_entry adapter_shelf::make_ready(const adapter_entry& entry) {
  if (const std::string& fault = note_files(entry); !fault.empty()) {
    catalogue_.set_failed(entry.version, fault);
    refuse("adapter {}: {}", entry.full_name(), fault);
  }
  const std::uint64_t bytes = catalogue_.find(entry.version)->spec.bytes;  // as it is beside this base
  if (bytes > options_.memory) catalogue_.set_failed(entry.version, "is larger than adapters.memory");
  check_fits(bytes, "adapter " + entry.full_name());
  catalogue_.set_ready(entry.version);
  return *catalogue_.find(entry.version);
}

std::optional<fs::path> adapter_shelf::source_of(const std::string& name) const {
  std::error_code fault;
  if (!is_adapter_name(name)) return {};
  // Where the store itself is the source, it has a folder for each of its versions, which were published once.
  if (is_sha256(name) && fs::equivalent(options_.source, options_.store, fault)) return {};
  return adapter_among(options_.source, name);
}

adapter_entry adapter_shelf::load(const std::string& text) {
  const auto loaded = catalogue_.load(text);
  if (!loaded && loaded.error().why == catalogue_error::reason::unknown && is_adapter_name(text))
    throw unknown_error(
        fmt::format("adapter {}: there is none, and no folder {}: name its folder or .gguf file with --path", text,
                    (options_.source / text).string()));
  return make_ready(value_of(loaded));
}

void adapter_shelf::preload(const std::string& text) {
  if (const auto source = source_of(text)) return preload(text, *source);
  const adapter_entry* newest = catalogue_.newest(text);
  if (!newest || newest->state == adapter_state::ready) (void)load(text);
}

/// Otherwise each start would undo what was published, rolled back or unloaded after the one before.
void adapter_shelf::preload(const std::string& name, const fs::path& source) {
  const candidate copy = copy_in(name, source);
  const auto known = versions_with(copy);
  if (known.empty()) return void(preloaded_.insert(add_version(copy).version));
  give_up(copy);
  for (const adapter_entry& each : known) {
    note_files(each);  // which may have been gone
    preloaded_.insert(each.version);
  }
}

std::vector<adapter_entry> adapter_shelf::versions_with(const candidate& copy) const {
  auto found = catalogue_.list();
  std::erase_if(
      found, [&](const adapter_entry& each) { return each.spec.name != copy.name || each.spec.sha256 != copy.sha256; });
  return found;
}

adapter_entry adapter_shelf::find_or_publish(const std::string& name) {
  const auto version = catalogue_.resolve(name);
  if (version && details_.contains(*version)) return *catalogue_.find(*version);
  if (!version && version.error().why != catalogue_error::reason::unknown) refuse_by(version.error());
  if (const auto source = source_of(name)) return publish_unasked(name, *source);
  if (!version) refuse_by(version.error());
  return make_ready(*catalogue_.find(*version));
}

/// Whoever named it in a request need not know where the head has its folders.
adapter_entry adapter_shelf::publish_unasked(const std::string& name, const fs::path& source) try {
  return publish(name, source);
} catch (const input_error& error) {
  throw input_error(with_shown_path(error.what(), source.string(), "adapter " + name));
}

adapter_entry adapter_shelf::rollback(const std::string& name, std::optional<std::uint32_t> ordinal) {
  return value_of(catalogue_.rollback(name, ordinal, [this](auto version) { return details_.contains(version); }));
}

std::vector<adapter_entry> adapter_shelf::unload(const std::string& text) {
  std::vector<adapter_entry> gone;
  for (const adapter_version version : value_of(catalogue_.unload(text))) gone.push_back(*catalogue_.find(version));
  return gone;
}

void adapter_shelf::forget_unloaded(const std::function<bool(adapter_version)>& is_used) {
  const auto stays = [&](adapter_version version) { return preloaded_.contains(version) || is_used(version); };
  for (const adapter_entry& gone : catalogue_.forget_unloaded(stays)) {
    details_.erase(gone.version);
    faults_.erase(gone.version);
    perhaps_unused_.insert(gone.spec.sha256);
  }
}

void adapter_shelf::remove_unused_files() {
  if (perhaps_unused_.empty()) return;
  for (const adapter_entry& each : catalogue_.list()) perhaps_unused_.erase(each.spec.sha256);
  for (const std::string& sha256 : candidates_) perhaps_unused_.erase(sha256);
  for (const std::string& sha256 : std::exchange(perhaps_unused_, {})) {
    std::error_code ignored;
    fs::remove_all(folder_of(sha256), ignored);
  }
}

adapter_details adapter_shelf::details_of(const std::string& text) const {
  const adapter_version version = value_of(catalogue_.resolve(text));
  const auto found = details_.find(version);
  if (found == details_.end()) refuse("adapter {}: has no files", text);
  return found->second;
}

/// Names from outside are only compared with known ones; they never become part of a path.
adapter_piece adapter_shelf::read_piece(const want_piece& wanted) const {
  adapter_piece piece{
      .sha256 = wanted.sha256.substr(0, 64), .file = wanted.file.substr(0, 64), .offset = wanted.offset};
  const bool known = candidates_.contains(wanted.sha256) ||
                     std::any_of(details_.begin(), details_.end(),
                                 [&](const auto& each) { return each.second.sha256 == wanted.sha256; });
  const auto name = std::find(adapter_file_names.begin(), adapter_file_names.end(), wanted.file);
  if (known && name != adapter_file_names.end())
    return with_bytes_of(folder_of(wanted.sha256) / *name, std::move(piece));
  piece.error = "the adapter store has no such file";
  return piece;
}

}  // namespace troupe
