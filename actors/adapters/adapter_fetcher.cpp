#include "actors/adapters/adapter_fetcher.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "actors/adapters/adapter_digest.hpp"
#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "model/lora/adapter_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view fetching_prefix = ".fetching-";

/// In a container each process may have the number of the one before.
bool is_of_a_process_that_ended(const std::string& name) {
  if (!name.starts_with(fetching_prefix)) return false;
  pid_t pid = 0;
  const char* digits = name.data() + name.rfind('-') + 1;
  std::from_chars(digits, name.data() + name.size(), pid);
  return pid == ::getpid() || (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH);
}

/// Removes what killed workers of this host have left.
void remove_abandoned_files(const fs::path& store) {
  std::error_code fault;
  std::vector<fs::path> found;
  for (fs::directory_iterator each(store, fault), end; !fault && each != end; each.increment(fault))
    if (is_of_a_process_that_ended(each->path().filename().string())) found.push_back(each->path());
  for (const fs::path& path : found) fs::remove_all(path, fault);
}

struct fetched_folder {
  fs::file_time_type used;
  std::uint64_t bytes = 0;
  fs::path path;
};

/// The fetched folders, least recently used first.
std::vector<fetched_folder> fetched_folders(const fs::path& store) {
  std::vector<fetched_folder> all;
  std::error_code fault;
  for (fs::directory_iterator each(store, fault), end; !fault && each != end; each.increment(fault)) {
    std::error_code none;
    if (!is_digest(each->path().filename().string())) continue;
    const auto used = fs::last_write_time(each->path() / fetched_mark, none);
    if (none) continue;
    fetched_folder folder{used, 0, each->path()};
    for (const std::string_view name : adapter_file_names)
      if (const auto bytes = fs::file_size(each->path() / name, none); !none) folder.bytes += bytes;
    all.push_back(std::move(folder));
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  return all;
}

void check_files(const load_adapter& what) {
  if (!is_digest(what.sha256)) refuse("adapter {}: '{}' is no digest", what.full_name, what.sha256);
  const auto is_known = [](const adapter_file_info& file) {
    return file.bytes <= largest_adapter_file &&
           std::find(adapter_file_names.begin(), adapter_file_names.end(), file.name) != adapter_file_names.end();
  };
  if (what.files.empty() || !std::all_of(what.files.begin(), what.files.end(), is_known))
    refuse("adapter {}: its list of files is none of an adapter", what.full_name);
}

bool is_complete(const fs::path& folder, const load_adapter& what) {
  return std::all_of(what.files.begin(), what.files.end(), [&](const adapter_file_info& file) {
    std::error_code fault;
    return fs::file_size(folder / file.name, fault) == file.bytes && !fault;
  });
}

}  // namespace

adapter_fetcher_state::adapter_fetcher_state(handle::pointer self, adapter_fetcher_parts parts)
    : self_(self), parts_(std::move(parts)) {
  remove_abandoned_files(parts_.store);
}

adapter_fetcher_state::handle::behavior_type adapter_fetcher_state::make_behavior() {
  return {
      [this](const begin_fetching& begun) { worker_ = begun.worker; },
      [this](const load_adapter& what) {
        waiting_.push_back({what, {}});
        if (!transfer_) next();
      },
      [this](const prepare_adapter& what) {
        waiting_.push_back({load_adapter{{}, {}, what.full_name, what.sha256, what.files}, what.ticket});
        if (!transfer_) next();
      },
      [this](const adapter_piece& piece) { take_piece(piece); },
      [this](const stage_layers& layers) { layers_ = layers; },
      [this](forget_life) {
        layers_.reset();
        waiting_.clear();
        prepared_.clear();
        drop_transfer();
      },
      [this](stop_now) {
        drop_transfer();
        self_->quit();
      },
  };
}

void adapter_fetcher_state::next() {
  while (!transfer_ && !waiting_.empty()) {
    const wanted what = std::move(waiting_.front());
    waiting_.pop_front();
    begin(what);
  }
}

void adapter_fetcher_state::begin(const wanted& what) {
  const auto ready =
      std::find_if(prepared_.begin(), prepared_.end(), [&](const auto& each) { return each.first == what.sha256; });
  if (ready != prepared_.end()) return hand_over(what, ready->second);
  try {
    check_files(what);
    if (!load_stored(what)) fetch(what);
  } catch (const std::exception& error) {
    drop_transfer();
    fail(what, error.what());
  }
}

/// False where the files are not there, or another process of this host has just removed them.
bool adapter_fetcher_state::load_stored(const wanted& what) {
  const fs::path folder = parts_.store / what.sha256;
  if (!is_complete(folder, what)) return false;
  try {
    load(what);
  } catch (const std::exception&) {
    if (is_complete(folder, what)) throw;
    return false;
  }
  return true;
}

void adapter_fetcher_state::fetch(const wanted& what) {
  transfer_ = std::make_unique<transfer>();
  transfer_->what = what;
  transfer_->folder = folder_in_work(what.sha256);
  std::error_code fault;
  fs::create_directories(transfer_->folder, fault);
  if (fault) refuse("{}: cannot be made: {}", transfer_->folder.string(), fault.message());
  open_file();
}

void adapter_fetcher_state::open_file() {
  const adapter_file_info& file = transfer_->what.files[transfer_->file];
  transfer_->offset = 0;
  transfer_->out = std::ofstream(transfer_->folder / file.name, std::ios::binary | std::ios::trunc);
  if (!transfer_->out) refuse("{}: cannot be written", (transfer_->folder / file.name).string());
  begin_adapter_file(transfer_->digest, file.name, file.bytes);
  tell(parts_.head, want_piece{transfer_->what.sha256, file.name, 0});
}

void adapter_fetcher_state::take_piece(const adapter_piece& piece) {
  if (!transfer_ || piece.sha256 != transfer_->what.sha256) return;
  const wanted what = transfer_->what;  // a copy, since fail() comes after drop_transfer()
  try {
    write_piece(piece);
  } catch (const std::exception& error) {
    drop_transfer();
    fail(what, error.what());
  }
  next();
}

void adapter_fetcher_state::write_piece(const adapter_piece& piece) {
  transfer& now = *transfer_;
  const adapter_file_info& file = now.what.files[now.file];
  if (piece.file != file.name || piece.offset != now.offset) return;
  if (!piece.error.empty()) refuse("adapter {}: {}", now.what.full_name, piece.error);
  const auto bytes = piece.attachment.bytes();
  if (bytes.empty() || bytes.size() > file.bytes - now.offset)
    refuse("adapter {}: {} came with another length than the head said", now.what.full_name, file.name);
  now.out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!now.out) refuse("{}: cannot be written: is the disk full?", (now.folder / file.name).string());
  now.digest.add(bytes);
  now.offset += bytes.size();
  if (now.offset < file.bytes) return tell(parts_.head, want_piece{now.what.sha256, file.name, now.offset});
  now.out.close();
  if (!now.out) refuse("{}: cannot be written: is the disk full?", (now.folder / file.name).string());
  if (++now.file < now.what.files.size()) return open_file();
  finish_transfer();
}

void adapter_fetcher_state::finish_transfer() {
  const wanted what = transfer_->what;
  if (transfer_->digest.finish() != what.sha256)
    refuse("adapter {}: its files do not have the digest that the head said", what.full_name);
  keep_files();
  drop_transfer();
  load(what);
}

/// Another process of this host may have fetched the files meanwhile. A folder that lacks some of them was left by a
/// crash.
void adapter_fetcher_state::keep_files() const {
  const wanted& what = transfer_->what;
  const fs::path whole = parts_.store / what.sha256;
  (void)std::ofstream(transfer_->folder / fetched_mark);
  for (const adapter_file_info& file : what.files) sync_file(transfer_->folder / file.name);
  sync_file(transfer_->folder);
  std::error_code fault;
  if (!is_complete(whole, what)) fs::remove_all(whole, fault);
  fs::rename(transfer_->folder, whole, fault);
  if (fault && !is_complete(whole, what)) refuse("{}: cannot be made: {}", whole.string(), fault.message());
  sync_file(parts_.store);
  remove_least_used(what.sha256);
}

void adapter_fetcher_state::remove_least_used(const std::string& but_not) const {
  const auto all = fetched_folders(parts_.store);
  std::uint64_t bytes = 0;
  for (const fetched_folder& each : all) bytes += each.bytes;
  for (const fetched_folder& each : all) {
    if (bytes <= parts_.most_stored) return;
    if (each.path.filename() == but_not) continue;
    std::error_code fault;
    const fs::path leaving = folder_in_work(each.path.filename().string());  // so that others find it whole or not
    fs::rename(each.path, leaving, fault);
    if (!fault) fs::remove_all(leaving, fault);
    bytes -= each.bytes;
  }
}

fs::path adapter_fetcher_state::folder_in_work(const std::string& sha256) const {
  return parts_.store / fmt::format("{}{}-{}", fetching_prefix, sha256.substr(0, 16), ::getpid());
}

void adapter_fetcher_state::load(const wanted& what) {
  const model_config& config = parts_.model->config;
  std::error_code no_mark;
  fs::last_write_time(parts_.store / what.sha256 / fetched_mark, fs::file_time_type::clock::now(), no_mark);
  adapter_file file = read_adapter(parts_.store / what.sha256, config);
  if (layers_) {
    const auto is_elsewhere = [&](const adapter_part& part) {
      return part.layer < layers_->first || part.layer >= layers_->first + layers_->count;
    };
    std::erase_if(file.parts, is_elsewhere);
  }
  const adapter_precision precision = precision_beside(parts_.model->quantization);
  hand_over(what, std::make_shared<const lora_adapter>(file, config.layers, precision));
}

void adapter_fetcher_state::hand_over(const wanted& what, std::shared_ptr<const lora_adapter> adapter) {
  std::erase_if(prepared_, [&](const auto& each) { return each.first == what.sha256; });
  if (!what.ticket) return tell(worker_, adapter_ready{what, std::move(adapter), {}});
  prepared_.emplace_back(what.sha256, std::move(adapter));
  const auto bytes = [&] {
    std::size_t sum = 0;
    for (const auto& each : prepared_) sum += each.second->bytes();
    return sum;
  };
  while (bytes() > parts_.most_prepared) prepared_.pop_front();
  tell(parts_.head, adapter_prepared{*what.ticket, {}});
}

void adapter_fetcher_state::fail(const wanted& what, const std::string& error) {
  if (what.ticket) return tell(parts_.head, adapter_prepared{*what.ticket, error});
  tell(worker_, adapter_ready{what, nullptr, error});
}

void adapter_fetcher_state::drop_transfer() {
  if (!transfer_) return;
  std::error_code ignored;
  fs::remove_all(transfer_->folder, ignored);
  transfer_.reset();
}

adapter_fetcher_actor spawn_adapter_fetcher(caf::actor_system& system, adapter_fetcher_parts parts) {
  return spawn_state<adapter_fetcher_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
