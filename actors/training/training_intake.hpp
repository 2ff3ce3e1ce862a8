// What clients send to learn from, without an actor: pieces become files, files are read whole and checked before a job
// may be made of them. Everything throws input_error with one line for whoever asked.
#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "actors/requests/prompting.hpp"
#include "actors/training/training_files.hpp"
#include "actors/training/training_spec.hpp"
#include "base/clock.hpp"

namespace troupe {

class training_intake {
 public:
  struct options {
    std::filesystem::path folder;   ///< FOLDER/<job>/ becomes a job's
    std::filesystem::path uploads;  ///< of /v1/files: <id>.data
    std::filesystem::path model;
    std::shared_ptr<const prompting> prompts;
    std::uint64_t largest_data = std::uint64_t{1} << 30;
    std::size_t most_open = 64;                                  ///< jobs that are being sent, or are not over
    std::chrono::seconds longest_pause = std::chrono::hours(1);  ///< of whoever sends: then it is taken for gone
    std::shared_ptr<const clock> time = std::make_shared<monotonic_clock>();
  };
  /// What was found in a job's data.
  struct summary {
    std::vector<training_file> files;
    std::int64_t examples = 0, learned_tokens = 0, shortened = 0;
    std::uint64_t reading = 0;  ///< of all of it (reading_of)
  };

  explicit training_intake(options chosen) : options_(std::move(chosen)) {}

  std::filesystem::path folder_of(const std::string& job) const { return options_.folder / job; }
  /// A piece of "data" or "validation". Returns how many bytes are there now: a caller that was not heard goes on
  /// there.
  std::uint64_t add_piece(const std::string& job, const std::string& which, std::uint64_t offset,
                          std::string_view text);
  /// A file of /v1/files instead.
  void take_file(const std::string& job, const std::string& which, const std::string& file);
  /// So long it is not taken for abandoned, however long what was sent waits to be read.
  void hold(const std::string& job);
  void let_go(const std::string& job);
  /// Everything was sent. The digests may be empty where nobody knows them.
  summary accept(const std::string& job, const training_spec& spec, const std::string& data_sha256,
                 const std::string& validation_sha256);
  /// Of a job that was accepted before.
  std::vector<training_file> files_of(const std::string& job, const training_spec& spec) const;
  void remove(const std::string& job);
  /// Folders of jobs that are not in the list: leftovers of what never came to be, or is over.
  void remove_all_but(const std::vector<std::string>& jobs);

 private:
  std::filesystem::path part_of(const std::string& job, const std::string& which) const;
  void make_room(const std::string& job);
  void note_sender(const std::string& job);
  void remove_abandoned();
  bool is_silent(const std::string& job);
  training_file name_file(const std::string& job, const std::string& which, const std::string& name,
                          const std::string& sha256);
  void read(const std::string& job, const std::string& file, const std::string& shown, const training_spec& spec,
            summary& into) const;

  options options_;
  std::mutex mutex_;                      ///< of these two: data is read on a thread of its own
  std::map<std::string, instant> heard_;  ///< when somebody sent of it last, or it was first seen
  std::set<std::string> held_;
};

}  // namespace troupe
