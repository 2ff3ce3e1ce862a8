#include "actors/adapters/adapter_download.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <utility>

#include "actors/adapters/adapter_files.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view fetching_prefix = ".fetching-";

fs::path folder_in_work(const fs::path& store, const std::string& sha256) {
  return store / fmt::format("{}{}-{}", fetching_prefix, sha256.substr(0, 16), ::getpid());
}

/// In a container each process may have the number of the one before.
bool is_of_a_process_that_ended(const std::string& name) {
  if (!name.starts_with(fetching_prefix)) return false;
  pid_t pid = 0;
  const char* digits = name.data() + name.rfind('-') + 1;
  std::from_chars(digits, name.data() + name.size(), pid);
  return pid == ::getpid() || (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH);
}

struct fetched_folder {
  fs::file_time_type used;
  std::uint64_t bytes = 0;
  fs::path path;
};

/// The fetched folders, least recently used first.
std::vector<fetched_folder> fetched_folders(const fs::path& store) {
  std::vector<fetched_folder> all;
  for (const fs::path& path : entries_of(store)) {
    if (!is_sha256(path.filename().string())) continue;
    std::error_code none;
    const auto used = fs::last_write_time(path / fetched_mark, none);
    if (none) continue;
    fetched_folder folder{used, 0, path};
    for (const std::string_view name : adapter_file_names)
      if (const auto bytes = fs::file_size(path / name, none); !none) folder.bytes += bytes;
    all.push_back(std::move(folder));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  return all;
}

}  // namespace

void check_files(const adapter_contents& adapter) {
  if (!is_sha256(adapter.sha256)) refuse("adapter {}: '{}' is no digest", adapter.full_name, adapter.sha256);
  const auto is_known = [](const adapter_file_info& file) {
    return file.bytes <= largest_adapter_file &&
           std::find(adapter_file_names.begin(), adapter_file_names.end(), file.name) != adapter_file_names.end();
  };
  if (adapter.files.empty() || !std::all_of(adapter.files.begin(), adapter.files.end(), is_known))
    refuse("adapter {}: its list of files is none of an adapter", adapter.full_name);
}

bool is_complete(const fs::path& folder, const adapter_contents& adapter) {
  return std::all_of(adapter.files.begin(), adapter.files.end(), [&](const adapter_file_info& file) {
    std::error_code fault;
    return fs::file_size(folder / file.name, fault) == file.bytes && !fault;
  });
}

adapter_download::adapter_download(fs::path store, adapter_contents adapter)
    : store_(std::move(store)), adapter_(std::move(adapter)), folder_(folder_in_work(store_, adapter_.sha256)) {
  make_private_folder(folder_);
}

adapter_download::~adapter_download() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::optional<want_piece> adapter_download::next() {
  if (at_ == adapter_.files.size()) return {};
  const adapter_file_info& file = adapter_.files[at_];
  if (!coming_) {
    coming_.emplace(folder_ / file.name, file.bytes);
    begin_adapter_file(digest_, file.name, file.bytes);
  }
  return want_piece{adapter_.sha256, file.name, coming_->offset()};
}

bool adapter_download::take(const adapter_piece& piece) {
  if (!coming_) return false;
  if (piece.sha256 != adapter_.sha256 || piece.file != adapter_.files[at_].name || piece.offset != coming_->offset())
    return false;
  if (!piece.error.empty()) refuse("adapter {}: {}", adapter_.full_name, piece.error);
  coming_->take(piece.attachment.bytes());
  digest_.add(piece.attachment.bytes());
  if (coming_->is_whole()) close();
  return true;
}

void adapter_download::close() {
  coming_.reset();
  if (++at_ < adapter_.files.size()) return;
  if (digest_.finish() != adapter_.sha256)
    refuse("adapter {}: its files do not have the digest that the head said", adapter_.full_name);
  keep();
}

/// Another process of this host may have fetched the files meanwhile. A folder that lacks some of them was left by a
/// crash.
void adapter_download::keep() const {
  const fs::path whole = store_ / adapter_.sha256;
  (void)std::ofstream(folder_ / fetched_mark);
  for (const adapter_file_info& file : adapter_.files) sync_file(folder_ / file.name);
  sync_file(folder_);
  std::error_code fault;
  if (!is_complete(whole, adapter_)) fs::remove_all(whole, fault);
  fs::rename(folder_, whole, fault);
  if (fault && !is_complete(whole, adapter_)) fail_to_write(whole, fault.value());
  sync_file(store_);
}

void remove_abandoned_downloads(const fs::path& store) {
  std::error_code ignored;
  for (const fs::path& path : entries_of(store))
    if (is_of_a_process_that_ended(path.filename().string())) fs::remove_all(path, ignored);
}

void remove_least_used(const fs::path& store, std::uint64_t most, const std::string& but_not) {
  const auto all = fetched_folders(store);
  std::uint64_t bytes = 0;
  for (const fetched_folder& each : all) bytes += each.bytes;
  for (const fetched_folder& each : all) {
    if (bytes <= most) return;
    const std::string name = each.path.filename().string();
    if (name == but_not) continue;
    std::error_code fault;
    const fs::path leaving = folder_in_work(store, name);  // so that others find it whole or not
    fs::rename(each.path, leaving, fault);
    if (!fault) fs::remove_all(leaving, fault);
    bytes -= each.bytes;
  }
}

}  // namespace troupe
