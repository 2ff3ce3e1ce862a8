#include "actors/training/training_files.hpp"

#include <algorithm>
#include <array>

#include <unistd.h>

#include "actors/adapters/adapter_files.hpp"
#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/read_failure.hpp"
#include "base/whole_file.hpp"
#include "cluster/adapters/adapter_catalogue.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 6> data_names{"data.jsonl",       "data.json",       "data.txt",
                                                     "validation.jsonl", "validation.json", "validation.txt"};

bool is_known_name(std::string_view name) {
  const auto in = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  return in(data_names) || in(adapter_file_names);
}

/// The process id is part of the name, since trainers of one host share a job's folder.
fs::path part_of(const fs::path& file) {
  return file.string() + fmt::format(".{}.part", ::getpid());
}

bool is_there(const fs::path& folder, const training_file& file) {
  std::error_code fault;
  if (fs::file_size(folder / file.name, fault) != file.bytes || fault) return false;
  return describe_file(folder, file.name).sha256 == file.sha256;
}

}  // namespace

void check_training_id(std::string_view text) {
  if (!is_short_word(text)) refuse("a job's id has 1 to 64 letters, digits, '-' or '_'");
}

bool may_pass(const std::exception& failure) {
  return dynamic_cast<const write_failure*>(&failure) || dynamic_cast<const read_failure*>(&failure);
}

/// Not mapped: a disk that cannot return it would end the process, and every head that is to go on with the job.
training_file describe_file(const fs::path& folder, const std::string& name) {
  training_file made{name, 0, {}};
  sha256 digest;
  for (shared_bytes piece; piece = read_file_piece(folder / name, made.bytes), !piece.bytes().empty();) {
    digest.add(piece.bytes());
    made.bytes += piece.bytes().size();
  }
  if (made.bytes == 0) refuse("{}: is empty", (folder / name).string());
  made.sha256 = digest.finish();
  return made;
}

training_piece read_training_piece(const fs::path& folder, const std::vector<training_file>& files,
                                   const want_training_piece& wanted) {
  training_piece piece{wanted.lease, wanted.file.substr(0, 64), wanted.offset, {}, {}};
  const auto known =
      std::find_if(files.begin(), files.end(), [&](const auto& each) { return each.name == wanted.file; });
  if (known != files.end()) return with_bytes_of(folder / known->name, std::move(piece));
  piece.error = "there is no such file";
  return piece;
}

training_download::training_download(fs::path folder, std::vector<training_file> files, training_lease lease)
    : folder_(std::move(folder)), files_(std::move(files)), lease_(lease) {
  for (const training_file& file : files_)
    if (!is_known_name(file.name) || file.bytes > largest_adapter_file || file.bytes == 0 || !is_sha256(file.sha256))
      refuse("a job's file '{}' of {} bytes: is none of training", file.name.substr(0, 64), file.bytes);
  make_private_folder(folder_);
}

training_download::~training_download() {
  std::error_code ignored;
  if (coming_) fs::remove(part_of(folder_ / files_[at_].name), ignored);
}

std::optional<want_training_piece> training_download::next() {
  while (!coming_ && at_ < files_.size() && is_there(folder_, files_[at_])) ++at_;
  if (at_ == files_.size()) return {};
  const training_file& file = files_[at_];
  if (!coming_) {
    coming_.emplace(part_of(folder_ / file.name), file.bytes);
    digest_.emplace();
  }
  return want_training_piece{lease_, file.name, coming_->offset()};
}

bool training_download::take(const training_piece& piece) {
  if (!coming_ || piece.lease != lease_) return false;
  const training_file& file = files_[at_];
  if (piece.file != file.name || piece.offset != coming_->offset()) return false;
  if (!piece.error.empty()) throw read_failure(fmt::format("{}: {}", file.name, piece.error));
  coming_->take(piece.attachment.bytes());
  digest_->add(piece.attachment.bytes());
  if (coming_->is_whole()) close(file);
  return true;
}

void training_download::close(const training_file& file) {
  if (digest_->finish() != file.sha256) refuse("{}: came damaged: its digest is another one", file.name);
  move_to(part_of(folder_ / file.name), folder_ / file.name);
  coming_.reset();
  ++at_;
}

}  // namespace troupe
