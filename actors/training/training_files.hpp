// The files of a fine-tune on their way between a head and a trainer. They are described by length and SHA-256, sent in
// pieces, and get their final names once they are whole and right. No actor.
#pragma once
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/file_pieces.hpp"
#include "actors/messages.hpp"
#include "base/sha256.hpp"

namespace troupe {

/// Throws input_error unless a text may name a job's folder (is_short_word).
void check_training_id(std::string_view text);

/// Whether a job may go on once somebody has mended what failed, such as a full disk: it is to be paused then.
/// Otherwise it has failed, and all of it is removed.
bool may_pass(const std::exception& failure);

/// Length and digest of a file. Throws read_failure, or input_error if it is empty.
training_file describe_file(const std::filesystem::path& folder, const std::string& name);

/// A piece of one of `files`, or why not. Names from outside are only compared with the known ones; they never become
/// part of a path.
training_piece read_training_piece(const std::filesystem::path& folder, const std::vector<training_file>& files,
                                   const want_training_piece& wanted);

/// Fetches the files that a folder lacks, one piece after the other. Errors are input_error, write_failure, or
/// read_failure: also where the other side could not read its file.
class training_download {
 public:
  training_download(std::filesystem::path folder, std::vector<training_file> files, training_lease lease);
  ~training_download();  ///< removes a file that has not come whole: the disk may be full
  training_download(const training_download&) = delete;
  training_download& operator=(const training_download&) = delete;

  /// The piece to ask for; nothing once all files are there.
  std::optional<want_training_piece> next();
  /// Returns false, and ignores the piece, if it is not the one that was asked for.
  bool take(const training_piece& piece);

 private:
  void close(const training_file& file);

  std::filesystem::path folder_;
  std::vector<training_file> files_;
  training_lease lease_;
  std::size_t at_ = 0;
  std::optional<incoming_file> coming_;
  std::optional<sha256> digest_;  ///< of it
};

}  // namespace troupe
