#include "actors/adapters/adapter_files.hpp"

#include <unistd.h>

#include "actors/file_pieces.hpp"
#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "model/formats/gguf/gguf.hpp"
#include "model/lora/adapter_gguf.hpp"
#include "model/lora/adapter_write.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view incoming_prefix = ".incoming-";

/// Refuses what would be refused when it is read, instead of copying it first.
void check_size(const fs::path& file, std::uint64_t bytes) {
  const bool is_config = file.filename() == adapter_config_name;
  if (bytes > (is_config ? most_adapter_config_bytes : largest_adapter_file))
    refuse("{}: has {} bytes: no adapter's is that large", file.string(), bytes);
}

/// Refuses a file that changes meanwhile, and a pipe: that is not waited for.
void copy_file(const fs::path& from, const fs::path& to, sha256& digest) {
  shared_bytes piece = read_file_piece(from, 0);
  std::error_code ignored;
  const auto written = fs::last_write_time(from, ignored);
  const std::uint64_t size = fs::file_size(from, ignored);
  check_size(from, size);
  begin_adapter_file(digest, to.filename().string(), size);
  incoming_file target(to, size);
  for (; piece.size() > 0; piece = read_file_piece(from, target.offset())) {
    if (piece.size() > size - target.offset()) break;
    digest.add(piece.bytes());
    target.take(piece.bytes());
  }
  if (piece.size() > 0 || !target.is_whole() || fs::last_write_time(from, ignored) != written)
    refuse("{}: changed while it was read: publish it when it is complete", from.string());
  sync_file(to);
}

}  // namespace

std::vector<adapter_file_info> adapter_files_in(const fs::path& folder) {
  std::vector<adapter_file_info> files;
  for (const std::string_view name : adapter_file_names) {
    std::error_code fault;
    const auto bytes = fs::file_size(folder / name, fault);
    if (fault) return {};
    files.push_back({std::string(name), bytes});
  }
  return files;
}

std::string digest_of_adapter(const fs::path& folder) {
  sha256 digest;
  for (const std::string_view name : adapter_file_names) {
    const mapped_file file(folder / name);
    begin_adapter_file(digest, name, file.bytes().size());
    digest.add(file.bytes());
  }
  return digest.finish();
}

std::optional<fs::path> adapter_among(const fs::path& folder, const std::string& name) {
  if (is_folder(folder / name)) return folder / name;
  const fs::path file = folder / (name + ".gguf");
  return is_seen(file) && is_gguf_file(file) ? std::optional(file) : std::nullopt;
}

adapter_file read_adapter_as(const fs::path& shown, const fs::path& copy, const model_config& base) {
  try {
    return read_adapter(copy, base);
  } catch (const input_error& error) {
    throw input_error(with_shown_path(error.what(), copy.string(), shown.string()));
  }
}

incoming_adapter::incoming_adapter(const fs::path& store, std::uint64_t number)
    : path_(store / fmt::format("{}{}-{}", incoming_prefix, ::getpid(), number)) {
  make_folder(path_);
}

incoming_adapter::~incoming_adapter() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

std::string incoming_adapter::copy_from(const fs::path& source, const model_config& base) const {
  return is_gguf_file(source) ? convert(source, base) : copy_folder(source);
}

std::string incoming_adapter::copy_folder(const fs::path& folder) const {
  check_adapter_folder(folder);
  for (const std::string_view name : adapter_file_names) {
    std::error_code fault;
    const std::uint64_t bytes = fs::file_size(folder / name, fault);
    if (!fault) check_size(folder / name, bytes);
  }
  sha256 digest;
  for (const std::string_view name : adapter_file_names) copy_file(folder / name, path_ / name, digest);
  return digest.finish();
}

/// A file that others may change is read from our own copy.
std::string incoming_adapter::convert(const fs::path& file, const model_config& base) const {
  (void)detail::open_gguf_adapter(file);  // rather than to copy a model
  const fs::path copy = path_ / file.filename();
  sha256 unused;
  copy_file(file, copy, unused);
  write_adapter(read_adapter_as(file, copy, base), base, path_, file.string());
  fs::remove(copy);
  return digest_of_adapter(path_);
}

void incoming_adapter::keep_as(const fs::path& name) {
  sync_file(path_);
  move_to(path_, name);
  path_.clear();
  sync_file(name.parent_path());
}

void remove_incoming_adapters(const fs::path& store) {
  std::error_code ignored;
  for (const fs::path& path : entries_of(store))
    if (path.filename().string().starts_with(incoming_prefix)) fs::remove_all(path, ignored);
}

}  // namespace troupe
