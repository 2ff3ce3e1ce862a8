#include "actors/training/training_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "actors/adapters/adapter_files.hpp"
#include "base/ascii.hpp"
#include "base/error.hpp"
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

bool is_training_id(std::string_view text) {
  return is_short_word(text);
}

void check_training_id(std::string_view text) {
  if (!is_training_id(text)) refuse("a job's id has 1 to 64 letters, digits, '-' or '_'");
}

/// Not mapped: a disk that cannot return it would end the process, and every head that is to go on with the job.
training_file describe_file(const fs::path& folder, const std::string& name) {
  training_file made{name, 0, {}};
  sha256 digest;
  for (shared_bytes piece; piece = read_file_piece(folder / name, made.bytes, 1 << 20), !piece.bytes().empty();) {
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
  if (known == files.end() || wanted.offset > known->bytes) {
    piece.error = "there is no such piece";
    return piece;
  }
  try {
    const std::uint64_t left = known->bytes - wanted.offset;
    piece.attachment =
        read_file_piece(folder / known->name, wanted.offset, std::min<std::uint64_t>(largest_training_piece, left));
  } catch (const input_error& error) {
    piece.error = error.what();
  }
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
  if (digest_) fs::remove(part_of(folder_ / files_[at_].name), ignored);
}

std::optional<want_training_piece> training_download::next() {
  for (; at_ < files_.size(); ++at_) {
    const training_file& file = files_[at_];
    if (digest_) return want_training_piece{lease_, file.name, offset_};
    if (is_there(folder_, file)) continue;
    open(file);
    return want_training_piece{lease_, file.name, 0};
  }
  return {};
}

void training_download::open(const training_file& file) {
  const fs::path part = part_of(folder_ / file.name);
  out_ = std::ofstream(part, std::ios::binary | std::ios::trunc);
  if (!out_) throw write_failure(fmt::format("{}: cannot be written: {}", part.string(), std::strerror(errno)));
  digest_.emplace();
  offset_ = 0;
}

bool training_download::take(const training_piece& piece) {
  if (at_ >= files_.size() || !digest_ || piece.lease != lease_) return false;
  const training_file& file = files_[at_];
  if (piece.file != file.name || piece.offset != offset_) return false;
  if (!piece.error.empty()) refuse("{}: {}", file.name, piece.error);
  const auto bytes = piece.attachment.bytes();
  if (bytes.empty() || bytes.size() > file.bytes - offset_) refuse("{}: came with another length", file.name);
  out_.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  digest_->add(bytes);
  offset_ += bytes.size();
  if (offset_ == file.bytes) close(file);
  return true;
}

void training_download::close(const training_file& file) {
  out_.close();
  const fs::path whole = folder_ / file.name, part = part_of(whole);
  if (!out_) throw write_failure(fmt::format("{}: cannot be written: is the disk full?", part.string()));
  if (digest_->finish() != file.sha256) refuse("{}: came damaged: its digest is another one", file.name);
  move_to(part, whole);
  digest_.reset();
  ++at_;
}

}  // namespace troupe
