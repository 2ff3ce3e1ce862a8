#include "actors/adapter_shelf.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "actors/adapter_digest.hpp"
#include "base/error.hpp"
#include "model/lora/adapter_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view incoming_prefix = ".incoming-";

template <class T>
T value_of(const result<T, catalogue_error>& from) {
  if (!from) throw input_error(from.error().text);
  return *from;
}

class open_file {
 public:
  open_file(const fs::path& path, int flags) : path_(path), number_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (number_ < 0) fail("opened");
  }
  ~open_file() { ::close(number_); }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  [[noreturn]] void fail(const char* done) const {
    refuse("{}: cannot be {}: {}", path_.string(), done, std::strerror(errno));
  }
  off_t size() const {
    struct stat status {};
    if (::fstat(number_, &status) != 0) fail("read");
    if (!S_ISREG(status.st_mode)) refuse("{}: is no file", path_.string());
    return status.st_size;
  }
  std::size_t read(std::span<std::byte> to, off_t at) const {
    const auto got = ::pread(number_, to.data(), to.size(), at);
    if (got < 0) fail("read");
    return static_cast<std::size_t>(got);
  }
  void write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const auto put = ::write(number_, bytes.data(), bytes.size());
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) fail("written");
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
  }
  void sync() const {
    if (::fsync(number_) != 0) fail("written");
  }

 private:
  fs::path path_;
  int number_;
};

void sync_folder(const fs::path& folder) {
  open_file(folder, O_RDONLY | O_DIRECTORY).sync();
}

/// Copies until the file ends, however long it was said to be.
void copy_file(const fs::path& from, const fs::path& to, sha256& digest) {
  const open_file source(from, O_RDONLY), target(to, O_WRONLY | O_CREAT | O_EXCL);
  const off_t size = source.size();
  if (size > static_cast<off_t>(largest_adapter_file))
    refuse("{}: has {} bytes: no adapter is that large", from.string(), size);
  begin_adapter_file(digest, to.filename().string(), static_cast<std::uint64_t>(size));
  std::vector<std::byte> buffer(1 << 20);
  for (off_t at = 0; at < size;) {
    const std::size_t got = source.read(buffer, at);
    if (got == 0) refuse("{}: became shorter while it was read: publish it when it is complete", from.string());
    const auto piece = std::span(buffer).first(std::min<std::size_t>(got, static_cast<std::size_t>(size - at)));
    digest.add(piece);
    target.write(piece);
    at += static_cast<off_t>(piece.size());
  }
  target.sync();
}

/// A folder that goes away again unless it was given its final name.
class incoming_folder {
 public:
  explicit incoming_folder(fs::path path) : path_(std::move(path)) {
    std::error_code fault;
    fs::create_directories(path_, fault);
    if (fault) refuse("{}: cannot be made: {}", path_.string(), fault.message());
  }
  ~incoming_folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  incoming_folder(const incoming_folder&) = delete;
  incoming_folder& operator=(const incoming_folder&) = delete;

  const fs::path& path() const { return path_; }
  void keep_as(const fs::path& name) {
    sync_folder(path_);
    std::error_code fault;
    fs::rename(path_, name, fault);
    if (fault) refuse("{}: cannot be made: {}", name.string(), fault.message());
    path_.clear();
    sync_folder(name.parent_path());
  }

 private:
  fs::path path_;
};

std::vector<adapter_file_info> files_in(const fs::path& folder) {
  std::vector<adapter_file_info> files;
  for (const std::string_view name : adapter_file_names) {
    std::error_code fault;
    const auto bytes = fs::file_size(folder / name, fault);
    if (fault) return {};
    files.push_back({std::string(name), bytes});
  }
  return files;
}

/// read_adapter's refusal with the path that the user knows.
adapter_file read_as(const fs::path& shown, const fs::path& folder, const model_config& model) {
  try {
    return read_adapter(folder, model);
  } catch (const input_error& error) {
    std::string text = error.what();
    for (std::size_t at = 0; (at = text.find(folder.string(), at)) != std::string::npos; at += shown.string().size())
      text.replace(at, folder.string().size(), shown.string());
    throw input_error(text);
  }
}

void remove_leftovers(const fs::path& store) {
  std::error_code fault;
  std::vector<fs::path> found;
  for (fs::directory_iterator each(store, fault), end; !fault && each != end; each.increment(fault))
    if (each->path().filename().string().starts_with(incoming_prefix)) found.push_back(each->path());
  for (const auto& path : found) fs::remove_all(path, fault);
}

}  // namespace

adapter_shelf::adapter_shelf(options chosen, catalogue_records saved)
    : options_(std::move(chosen)), catalogue_({options_.base_name, options_.base, 1 << 16}, std::move(saved)) {
  std::error_code fault;
  fs::create_directories(options_.store, fault);
  if (fault) refuse("{}: cannot be made: {}", options_.store.string(), fault.message());
  remove_leftovers(options_.store);
  for (const adapter_entry& entry : catalogue_.list())
    if (entry.spec.base == options_.base) note_files(entry);
}

void adapter_shelf::note_files(const adapter_entry& entry) {
  auto files = files_in(folder_of(entry.spec.sha256));
  if (files.empty()) return;
  details_[entry.version] = {entry.version, entry.full_name(), entry.spec.sha256, std::move(files),
                             static_cast<std::int64_t>(entry.spec.bytes)};
}

adapter_shelf::taken adapter_shelf::take(const std::string& name, const fs::path& folder) {
  if (!is_adapter_name(name))
    refuse("adapter name '{}': take 1 to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit", name);
  taken made = take_in(folder);
  made.name = name;
  made.files = files_in(folder_of(made.sha256));
  made.is_new = std::none_of(details_.begin(), details_.end(),
                             [&](const auto& each) { return each.second.sha256 == made.sha256; });
  taken_[made.sha256] = made.files;
  return made;
}

adapter_entry adapter_shelf::publish(const taken& what) {
  taken_.erase(what.sha256);
  const auto all = catalogue_.list();
  const adapter_entry* last = newest(what.name, all);
  // What was unloaded comes back under its old version.
  if (last && last->spec.sha256 == what.sha256 && last->state == adapter_state::unloaded)
    return make_ready(value_of(catalogue_.load(last->full_name())));
  return make_ready(value_of(catalogue_.publish(
      {what.name, what.sha256, folder_of(what.sha256).string(), what.bytes, what.rank, options_.base})));
}

adapter_shelf::taken adapter_shelf::take_in(const fs::path& folder) {
  incoming_folder incoming(options_.store / fmt::format("{}{}-{}", incoming_prefix, ::getpid(), ++incoming_));
  sha256 digest;
  for (const std::string_view name : adapter_file_names) {
    std::error_code fault;
    if (!fs::exists(folder / name, fault))
      refuse("{}: has no {}: an adapter as PEFT writes it is a folder with {} and {}", folder.string(), name,
             adapter_file_names[0], adapter_file_names[1]);
    copy_file(folder / name, incoming.path() / name, digest);
  }
  const adapter_file read = read_as(folder, incoming.path(), options_.model);
  taken made;
  made.sha256 = digest.finish();
  for (const adapter_part& part : read.parts) {
    made.bytes += (part.a.size() + part.b.size()) * sizeof(float);
    made.rank = std::max(made.rank, static_cast<std::uint32_t>(part.rank));
  }
  std::error_code ignored;
  if (files_in(folder_of(made.sha256)).empty()) {
    fs::remove_all(folder_of(made.sha256), ignored);
    incoming.keep_as(folder_of(made.sha256));
  }
  return made;
}

adapter_entry adapter_shelf::make_ready(const adapter_entry& entry) {
  note_files(entry);
  if (!details_.contains(entry.version)) {
    catalogue_.set_failed(entry.version, "its files are gone");
    refuse("adapter {}: its files are gone: publish the folder again", entry.full_name());
  }
  catalogue_.set_ready(entry.version);
  return *catalogue_.find(entry.version);
}

const adapter_entry* adapter_shelf::newest(std::string_view name, const std::vector<adapter_entry>& all) const {
  const auto last = std::find_if(all.rbegin(), all.rend(), [&](const adapter_entry& e) { return e.spec.name == name; });
  return last == all.rend() ? nullptr : &*last;
}

std::optional<fs::path> adapter_shelf::source_of(const std::string& name) const {
  std::error_code fault;
  if (!is_adapter_name(name) || !fs::is_directory(options_.source / name, fault)) return {};
  return options_.source / name;
}

adapter_entry adapter_shelf::load(const std::string& text) {
  if (const auto source = source_of(text)) return publish(text, *source);
  const auto loaded = catalogue_.load(text);
  if (!loaded && loaded.error().why == catalogue_error::reason::unknown && is_adapter_name(text))
    refuse("adapter {}: there is none, and no folder {}: name one with --path", text,
           (options_.source / text).string());
  return make_ready(value_of(loaded));
}

adapter_entry adapter_shelf::find_or_publish(const std::string& name) {
  const auto version = catalogue_.resolve(name);
  if (version && details_.contains(*version)) return *catalogue_.find(*version);
  if (!version && version.error().why != catalogue_error::reason::unknown) throw input_error(version.error().text);
  if (const auto source = source_of(name)) return publish(name, *source);
  if (version) refuse("adapter {}: its files are gone: publish the folder again", name);
  throw input_error(version.error().text);
}

adapter_entry adapter_shelf::rollback(const std::string& name, std::optional<std::uint32_t> ordinal) {
  return value_of(catalogue_.rollback(name, ordinal));
}

std::vector<adapter_entry> adapter_shelf::unload(const std::string& text) {
  std::vector<adapter_entry> gone;
  for (const adapter_version version : value_of(catalogue_.unload(text))) gone.push_back(*catalogue_.find(version));
  return gone;
}

adapter_details adapter_shelf::details_of(const std::string& text) const {
  const adapter_version version = value_of(catalogue_.resolve(text));
  const auto found = details_.find(version);
  if (found == details_.end()) refuse("adapter {}: has no files", text);
  return found->second;
}

adapter_directory::snapshot adapter_shelf::snapshot() const {
  adapter_directory::snapshot made;
  const std::array<std::string, 2> bases{"base", options_.base_name};
  const auto add = [&](const std::string& name, adapter_version version) {
    made.names[name] = version;
    for (const auto& base : bases) made.names[base + ":" + name] = version;
  };
  for (const auto& base : bases)
    if (!base.empty()) made.names[base] = no_adapter;
  for (const auto& [version, details] : details_) {
    const adapter_entry& entry = *catalogue_.find(version);
    made.versions.emplace(version, details);
    if (entry.state != adapter_state::ready) continue;
    add(entry.full_name(), version);
    if (catalogue_.is_current(entry)) add(entry.spec.name, version);
  }
  return made;
}

std::string adapter_shelf::list_json() const {
  auto list = nlohmann::ordered_json::array();
  for (const adapter_entry& entry : catalogue_.list()) {
    const bool gone = entry.state == adapter_state::ready && !details_.contains(entry.version);
    list.push_back({{"name", entry.spec.name},
                    {"version", entry.full_name()},
                    {"state", gone ? "missing" : name_of(entry.state)},
                    {"current", catalogue_.is_current(entry)},
                    {"rank", entry.spec.rank},
                    {"bytes", entry.spec.bytes},
                    {"sha256", entry.spec.sha256}});
    if (!entry.error.empty()) list.back()["error"] = entry.error;
  }
  return list.dump();
}

/// Names from outside are compared with what is known, and never become part of a path unknown.
adapter_piece adapter_shelf::read_piece(const want_piece& wanted) const {
  adapter_piece piece{wanted.sha256.substr(0, 64), wanted.file.substr(0, 64), wanted.offset, {}, {}};
  const bool known = taken_.contains(wanted.sha256) ||
                     std::any_of(details_.begin(), details_.end(),
                                 [&](const auto& each) { return each.second.sha256 == wanted.sha256; });
  const auto name = std::find(adapter_file_names.begin(), adapter_file_names.end(), wanted.file);
  if (!known || name == adapter_file_names.end()) {
    piece.error = "the adapter store has no such file";
    return piece;
  }
  try {
    const open_file file(folder_of(wanted.sha256) / *name, O_RDONLY);
    const auto size = static_cast<std::uint64_t>(file.size());
    if (wanted.offset > size) refuse("offset {} is beyond the file's {} bytes", wanted.offset, size);
    auto bytes = std::make_shared<std::vector<std::byte>>(std::min<std::uint64_t>(largest_piece, size - wanted.offset));
    bytes->resize(file.read(*bytes, static_cast<off_t>(wanted.offset)));
    const std::span<const std::byte> read(*bytes);
    piece.attachment = {std::move(bytes), read};
  } catch (const input_error& error) {
    piece.error = error.what();
  }
  return piece;
}

}  // namespace troupe
