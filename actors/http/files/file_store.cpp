#include "actors/http/files/file_store.hpp"

#include <algorithm>
#include <chrono>

#include "actors/json_dump_impl.hpp"
#include "base/ascii.hpp"
#include "base/entropy.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_file = 64 << 20;
constexpr std::size_t most_remembered = 10'000;  // as many as a page of a list has: who reads it may remove all
constexpr std::string_view own_names = "file-";

/// On the disk, together with what is said of it: many small ones fill one, too.
std::uint64_t room_of(const stored_file& file) {
  constexpr std::uint64_t block = 4096;
  return (file.bytes / block + 2) * block;
}

}  // namespace

file_store::file_store(fs::path folder, std::uint64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {
  remove_partial_files(folder_);
  remove_contents_alone();
}

/// What is said of a file comes behind its contents: without it nobody has heard of the file.
void file_store::remove_contents_alone() const {
  std::error_code ignored;
  for (const fs::path& path : entries_of(folder_)) {
    if (path.extension() != ".data" || !path.filename().string().starts_with(own_names)) continue;
    const fs::path said = fs::path(path).replace_extension(".json");
    if (fs::status(said, ignored).type() == fs::file_type::not_found) fs::remove(path, ignored);
  }
}

stored_file file_store::add(std::string_view filename, std::string_view purpose, std::string_view content,
                            const std::string& owner) {
  using namespace std::chrono;
  const auto now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch());
  stored_file file{.id = std::string(own_names) + random_hex(24),
                   .filename = std::string(filename),
                   .purpose = std::string(purpose),
                   .bytes = content.size(),
                   .created = now / seconds(1),
                   .owner = owner,
                   .nanoseconds = (now % seconds(1)).count()};
  const json record{
      {"id", file.id},           {"filename", file.filename}, {"purpose", file.purpose},        {"bytes", file.bytes},
      {"created", file.created}, {"owner", file.owner},       {"nanoseconds", file.nanoseconds}};
  measure();
  const std::lock_guard lock(mutex_);
  take_room(file);
  try {
    write(file.id + ".data", content);
    write(file.id + ".json", dump(record));
  } catch (...) {
    std::error_code ignored;
    fs::remove(folder_ / (file.id + ".data"), ignored);
    taken_[owner] -= room_of(file);
    throw;
  }
  return file;
}

/// When somebody adds or removes a file for the first time: the folder may have very many.
void file_store::measure() {
  std::call_once(measured_, [this] {
    for (const stored_file& each : list()) taken_[each.owner] += room_of(each);
  });
}

void file_store::take_room(const stored_file& file) {
  std::uint64_t& taken = taken_[file.owner];
  if (room_of(file) > most_bytes_ - std::min(taken, most_bytes_))
    throw full_error(
        fmt::format("the file takes {} bytes, and those that were uploaded before {} of {} that all of one key may: "
                    "delete some",
                    room_of(file), taken, most_bytes_));
  taken += room_of(file);
}

std::optional<stored_file> file_store::find(const std::string& id) const {
  if (!is_short_word(id) || !id.starts_with(own_names)) return std::nullopt;
  const auto text = read(id + ".json");
  if (!text) return std::nullopt;
  try {
    const auto record = detail::parse_json(*text, id);
    const detail::json_fields fields(record, id);
    return stored_file{.id = id,
                       .filename = fields.text("filename").value_or(""),
                       .purpose = fields.text("purpose").value_or(""),
                       .bytes = static_cast<std::uint64_t>(fields.integer("bytes").value_or(0)),
                       .created = fields.integer("created").value_or(0),
                       .owner = fields.text("owner").value_or(""),
                       .nanoseconds = fields.integer("nanoseconds").value_or(0)};
  } catch (const input_error&) {
    return std::nullopt;  // damaged: the other files are still served
  }
}

/// What is known of a file never changes, so it is read only once.
std::optional<stored_file> file_store::find_known(const std::string& id) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(id); known != known_.end()) return known->second;
  }
  auto found = find(id);
  const std::lock_guard lock(mutex_);
  if (found) known_.emplace(id, *found);
  return found;
}

std::vector<stored_file> file_store::list() const {
  std::vector<stored_file> files;
  for (const fs::path& path : entries_of(folder_)) {
    if (path.extension() != ".json") continue;
    if (auto found = find_known(path.stem().string())) files.push_back(std::move(*found));
  }
  return files;
}

std::optional<std::string> file_store::content(const std::string& id) const {
  if (!find(id)) return std::nullopt;
  return read(id + ".data");
}

void file_store::remove(const std::string& id) {
  measure();
  const auto file = find(id);
  if (!file) return;
  const std::lock_guard lock(mutex_);
  known_.erase(id);
  std::error_code ignored;
  fs::remove(folder_ / (id + ".data"), ignored);
  if (!fs::remove(folder_ / (id + ".json"), ignored)) return;  // somebody else was faster
  taken_[file->owner] -= room_of(*file);
  removed_.push_back(*file);
  if (removed_.size() > most_remembered) removed_.pop_front();
}

std::optional<stored_file> file_store::find_removed(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(removed_.begin(), removed_.end(), [&](const auto& each) { return each.id == id; });
  return found == removed_.end() ? std::nullopt : std::optional(*found);
}

void file_store::write(const std::string& name, std::string_view text) const {
  make_private_folder(folder_);
  write_file(folder_ / name, text);
}

std::optional<std::string> file_store::read(const std::string& name) const {
  std::error_code ignored;
  if (!fs::exists(folder_ / name, ignored)) return std::nullopt;
  try {
    return detail::read_text(folder_ / name, largest_file);
  } catch (const input_error&) {
    return std::nullopt;
  }
}

}  // namespace troupe
