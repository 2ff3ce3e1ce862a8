#include "model/arch/quantize.hpp"

#include <cerrno>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "model/arch/packed_file.hpp"
#include "model/arch/stored_scheme.hpp"
#include "model/arch/weight_list.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/tensors/safetensors.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view stage_beginning = ".partial-";

/// Not open where another process has the lock, or where the file system has none.
file_descriptor locked(const fs::path& folder) {
  file_descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open() && ::flock(opened.number(), LOCK_EX | LOCK_NB) != 0) opened.close();
  return opened;
}

/// What killed processes left: whoever still writes has a lock.
void remove_abandoned_stages(const fs::path& folder) {
  std::error_code fault;
  for (const fs::path& each : entries_of(folder)) {
    if (!each.filename().string().starts_with(stage_beginning)) continue;
    if (const file_descriptor held = locked(each); held.is_open()) fs::remove_all(each, fault);
  }
}

/// The folder that is written, and a place inside it for what is not finished. Unless finish() was reached, nothing of
/// it stays.
class staged_folder {
 public:
  explicit staged_folder(const fs::path& path) : path_(path.has_filename() ? path : path.parent_path()) {
    std::error_code error;
    created_ = fs::create_directories(path_, error);
    if (error) fail_to_write(path_, error.value());
    stage_ = path_ / fmt::format("{}{}", stage_beginning, ::getpid());
    if (!fs::create_directory(stage_, error)) clean_up(), fail_to_write(path_, error.value());
    lock_ = locked(stage_);
  }
  ~staged_folder() { clean_up(); }
  staged_folder(const staged_folder&) = delete;
  staged_folder& operator=(const staged_folder&) = delete;

  const fs::path& stage() const { return stage_; }
  /// The weights come last: a folder without them does not load.
  void finish() {
    remove_leftovers();
    for (const auto name : model_companions) publish(name);
    publish(gguf_metadata_name);
    publish(model_weights_name);
    created_ = false;
  }

 private:
  void publish(std::string_view name) const {
    if (!path_exists(stage_ / name)) return;
    make_folder((path_ / name).parent_path());
    move_to(stage_ / name, path_ / name);
  }
  /// What an earlier model left here would be taken for a part of this one.
  void remove_leftovers() const {
    std::error_code ignored;
    for (const auto name : model_companions) fs::remove(path_ / name, ignored);
    for (const auto name : {model_weights_name, model_index_name, gguf_metadata_name})
      fs::remove(path_ / name, ignored);
  }
  void clean_up() const {
    std::error_code ignored;
    fs::remove_all(stage_, ignored);
    if (created_) fs::remove_all(path_, ignored);
  }

  fs::path path_, stage_;
  file_descriptor lock_;
  bool created_ = false;
};

void check_target(const fs::path& from, const fs::path& to, bool replace) {
  std::error_code ignored;
  if (!path_exists(to)) return;
  if (!is_folder(to)) refuse("{}: is a file: choose another folder", to.string());
  const fs::path source = is_folder(from) ? from : from.parent_path() / ".";
  if (fs::equivalent(to, source, ignored))
    refuse("{}: is the folder of the model itself: choose another folder", to.string());
  if (!replace && !fs::is_empty(to, ignored))
    refuse("{}: is not empty: choose another folder, or replace the model there with --force", to.string());
}

/// Of all weights, where `scheme_of` says how a matrix is stored.
template <class SchemeOf>
std::int64_t bytes_of_weights(const model_config& config, SchemeOf scheme_of) {
  std::int64_t total = 0;
  visit_weights(config, {[&](const std::string& name, std::int64_t outs, std::int64_t ins) {
                           total += static_cast<std::int64_t>(packed_bytes(scheme_of(name), outs, ins).total());
                         },
                         [&](const std::string&, std::int64_t rows, std::int64_t size) {
                           total += rows * padded_row(size) * static_cast<std::int64_t>(sizeof(float));
                         }});
  return total;
}

/// Of the weights in a new file; a little more than that, never less.
std::int64_t expected_bytes(const model_files& source, const load_options& chosen) {
  constexpr std::int64_t header = 1 << 20;
  const load_options options = with_tied_head(chosen, source.config);
  return header + bytes_of_weights(source.config, [&](const std::string& name) {
           return stored_scheme(options, name, source.weights.at(name));
         });
}

void check_space(const fs::path& folder, std::int64_t wanted) {
  std::error_code error;
  const auto space = fs::space(folder, error);
  if (!error && space.available < static_cast<std::uintmax_t>(wanted))
    throw std::runtime_error(fmt::format("{}: {} MiB are needed and {} MiB are free: free some space", folder.string(),
                                         wanted >> 20, space.available >> 20));
}

void write_weights(const model_files& source, const load_options& options, thread_pool& pool, const fs::path& path) {
  const file_descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.is_open()) fail_to_write(path, errno);
  write_packed(source, options, pool,
               {file.number(), path.parent_path().string(), "free some space, or choose another folder"});
  if (::fsync(file.number()) != 0) fail_to_write(path, errno);
}

void write_companions(const model_files& source, const fs::path& to) {
  if (!source.gguf) return copy_companions(source.path, to);
  write_file(to / gguf_metadata_name, metadata_only_gguf(*source.gguf));
  copy_companion(template_beside(source.path), to / usual_template_file);
}

}  // namespace

quantized_sizes quantize_model(const fs::path& from, const fs::path& to, const load_options& options, bool replace,
                               thread_pool& pool) {
  if (!options.quant) refuse("{}: no scheme to quantize to: name one", from.string());
  const model_files source = open_model(from);
  if (is_packed(source.tensors)) refuse("{}: is already quantized: quantize the original model", source.path.string());
  remove_abandoned_stages(to);
  check_target(from, to, replace);
  quantized_sizes sizes;
  for (const auto& file : source.file_tensors().files)
    sizes.bytes_before += static_cast<std::int64_t>(file.bytes().size());
  staged_folder folder(to);
  check_space(to, expected_bytes(source, options));
  write_companions(source, folder.stage());
  write_weights(source, options, pool, folder.stage() / model_weights_name);
  sizes.bytes_after = static_cast<std::int64_t>(fs::file_size(folder.stage() / model_weights_name));
  folder.finish();
  return sizes;
}

std::int64_t packed_size(const model_config& config, scheme kind) {
  return bytes_of_weights(config, [&](const std::string& name) { return stored_scheme(kind, name); });
}

}  // namespace troupe
