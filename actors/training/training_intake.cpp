#include "actors/training/training_intake.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "actors/training/training_files.hpp"
#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view part_ending = ".part";
constexpr std::uint64_t largest_data = std::uint64_t{1} << 30;
constexpr std::size_t most_open = 64;                      // jobs that are being sent, or are not over
constexpr duration longest_pause = std::chrono::hours(1);  // without a piece: then the sender counts as gone

std::uint64_t size_of(const fs::path& file) {
  std::error_code fault;
  const auto size = fs::file_size(file, fault);
  return fault ? 0 : size;
}

/// The name that a file had while it was sent; empty if it is none of those that clients send.
fs::path part_before(const fs::path& file) {
  const std::string which = file.stem().string();
  if (which != "data" && which != "validation") return {};
  return file.parent_path() / (which + std::string(part_ending));
}

/// Whether nothing was accepted yet: accepted files have names of their own.
bool has_parts_alone(const fs::path& folder) {
  std::error_code fault;
  for (fs::directory_iterator each(folder, fault), end; !fault && each != end; each.increment(fault))
    if (each->path().extension() != part_ending) return false;
  return !fault;
}

}  // namespace

fs::path training_intake::part_of(const std::string& job, const std::string& which) const {
  check_training_id(job);
  if (which != "data" && which != "validation") refuse("\"file\" is '{}': use data or validation", which.substr(0, 32));
  return folder_of(job) / (which + std::string(part_ending));
}

void training_intake::make_room(const std::string& job) {
  std::error_code fault;
  if (fs::exists(folder_of(job), fault)) return;
  make_private_folder(options_.folder);
  remove_abandoned();
  const std::size_t open = entries_of(options_.folder).size();
  if (open >= most_open)
    throw full_error(
        fmt::format("{} jobs for trainers are being sent or not over: cancel some, or come back later", open));
  make_folder(folder_of(job));
}

void training_intake::remove_abandoned() {
  for (const fs::path& folder : entries_of(options_.folder)) {
    const std::string job = folder.filename().string();
    if (is_silent(job) && has_parts_alone(folder)) remove(job);
  }
}

bool training_intake::is_silent(const std::string& job) {
  const std::lock_guard lock(mutex_);
  const instant now = options_.time->now();
  const auto heard = heard_.try_emplace(job, now).first->second;
  return now - heard > longest_pause && !held_.contains(job);
}

bool training_intake::is_held(const std::string& job) {
  const std::lock_guard lock(mutex_);
  return held_.contains(job);
}

void training_intake::note_sender(const std::string& job) {
  const std::lock_guard lock(mutex_);
  heard_[job] = options_.time->now();
}

void training_intake::hold(const std::string& job) {
  const std::lock_guard lock(mutex_);
  held_.insert(job);
}

void training_intake::let_go(const std::string& job) {
  const std::lock_guard lock(mutex_);
  held_.erase(job);
}

std::uint64_t training_intake::add_piece(const std::string& job, const std::string& which, std::uint64_t offset,
                                         std::string_view text) {
  const fs::path part = part_of(job, which);
  make_room(job);
  note_sender(job);
  const std::uint64_t there = size_of(part);
  if (offset != there) return there;
  if (text.size() > largest_data - std::min(there, largest_data))
    refuse("the data has more than {} bytes: split it", largest_data);
  std::ofstream out(part, std::ios::binary | std::ios::app);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) return there + text.size();
  const int fault = errno;
  std::error_code ignored;
  fs::resize_file(part, there, ignored);
  fail_to_write(part, fault);
}

void training_intake::take_file(const std::string& job, const std::string& which, const std::string& file) {
  const fs::path part = part_of(job, which), from = options_.uploads / (file + ".data");
  std::error_code fault;
  if (!is_short_word(file) || !fs::is_regular_file(from, fault))
    refuse("there is no file {}: upload it with the purpose fine-tune", file.substr(0, 64));
  make_room(job);
  note_sender(job);
  fs::copy_file(from, part, fs::copy_options::overwrite_existing, fault);
  if (fault) fail_to_write(part, fault.value());
}

training_file training_intake::name_file(const std::string& job, const std::string& which, const std::string& name,
                                         const std::string& sha256) {
  const fs::path part = part_of(job, which);
  if (size_of(part) == 0) refuse("job {}: its {} did not come, or is empty: send it again", job, which);
  const training_file found = describe_file(folder_of(job), part.filename().string());
  if (!sha256.empty() && found.sha256 != sha256) {
    remove(job);
    refuse("job {}: its {} came damaged: send it again", job, which);
  }
  sync_file(part);
  move_to(part, folder_of(job) / name);
  sync_file(folder_of(job));
  return {name, found.bytes, found.sha256};
}

training_intake::summary training_intake::accept(const std::string& job, const training_spec& spec,
                                                 const std::string& data_sha256, const std::string& validation_sha256) {
  check_training_id(job);
  if (is_base_name(spec.adapter, options_.base_name))
    refuse("{} is the base's name: the adapter needs one of its own", spec.adapter);
  summary found;
  found.files.push_back(name_file(job, "data", spec.data_file(), data_sha256));
  if (spec.has_validation())
    found.files.push_back(name_file(job, "validation", spec.validation_file(), validation_sha256));
  read(job, spec.data_file(), spec.data_name, spec, found);
  if (spec.publish_best && !spec.has_validation() && found.examples < 2)
    refuse(
        "{}: has one example, so nothing is held out and none can be called the best: give it more, name validation "
        "data, or leave out \"best\"",
        spec.data_name);
  summary measured;
  if (spec.has_validation()) read(job, spec.validation_file(), spec.validation_name, spec, measured);
  found.validation_losses = measured.losses;
  found.reading = reading_of(found.reading, measured.reading);
  return found;
}

void training_intake::read(const std::string& job, const std::string& file, const std::string& shown,
                           const training_spec& spec, summary& into) const {
  const fs::path path = folder_of(job) / file;
  const model_config& config = options_.prompts->config();
  try {
    check_is_no_table(shown);
    const auto length = std::min(spec.run.row_length, config.context);
    const training_summary found = summarize_training_data(path, data_format_of(options_.model, config, length));
    into.examples = found.examples;
    into.learned_tokens = found.learned_tokens;
    into.losses = found.losses;
    into.reading = found.fingerprint;
  } catch (const input_error& error) {
    const char* field = file == spec.data_file() ? "training_file" : "validation_file";  // HTTP's names
    throw field_error(field, with_shown_path(error.what(), path.string(), shown));
  }
}

std::vector<training_file> training_intake::files_of(const std::string& job, const training_spec& spec) const {
  check_training_id(job);
  std::vector<training_file> files{describe_file(folder_of(job), spec.data_file())};
  if (spec.has_validation()) files.push_back(describe_file(folder_of(job), spec.validation_file()));
  return files;
}

std::vector<std::string> training_intake::jobs() const {
  std::vector<std::string> found;
  for (const fs::path& folder : entries_of(options_.folder)) found.push_back(folder.filename().string());
  return found;
}

/// Whose folder has this, and is not an unfinished job's, is over (take_up).
void training_intake::note_accepted(const std::string& job) const {
  std::ofstream(folder_of(job) / "accepted");
}

void training_intake::remove(const std::string& job) {
  {
    const std::lock_guard lock(mutex_);
    heard_.erase(job);
  }
  std::error_code ignored;
  if (is_short_word(job)) fs::remove_all(folder_of(job), ignored);
}

/// A head may have died between naming what was sent and writing down the job: then there is nothing else.
void training_intake::take_up(const std::vector<std::string>& unfinished) {
  for (const fs::path& folder : entries_of(options_.folder)) {
    const std::string job = folder.filename().string();
    if (std::ranges::find(unfinished, job) != unfinished.end() || is_held(job)) continue;
    const std::vector<fs::path> files = entries_of(folder);
    if (!std::ranges::all_of(files, [](const fs::path& file) { return !part_before(file).empty(); })) {
      remove(job);
      continue;
    }
    note_sender(job);
    std::error_code ignored;
    for (const fs::path& file : files) fs::rename(file, part_before(file), ignored);
  }
}

}  // namespace troupe
