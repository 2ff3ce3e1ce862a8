// Receives the data that clients send for a fine-tune. No actor. Pieces become files, which are read whole and checked
// before a job may be made of them. Everything throws input_error with one line for the user, or write_failure.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "actors/requests/prompting.hpp"
#include "actors/training/training_spec.hpp"
#include "base/clock.hpp"
#include "model/train/data/training_data.hpp"

namespace troupe {

class training_intake {
 public:
  struct options {
    std::filesystem::path folder;   ///< FOLDER/<job>/ has the files of a job
    std::filesystem::path uploads;  ///< where /v1/files keeps <id>.data
    std::filesystem::path model;
    std::string base_name;  ///< of the bare model in requests
    std::shared_ptr<const prompting> prompts;
    std::shared_ptr<const clock> time = std::make_shared<monotonic_clock>();
  };
  /// What reading a job's data has shown.
  struct summary {
    std::vector<training_file> files;
    std::int64_t examples = 0, learned_tokens = 0;
    data_losses losses, validation_losses;
    std::uint64_t reading = 0;  ///< fingerprint of all data as it was read (reading_of)
  };

  explicit training_intake(options chosen) : options_(std::move(chosen)) {}

  std::filesystem::path folder_of(const std::string& job) const { return options_.folder / job; }
  /// Adds a piece of "data" or "validation". Returns how many bytes have arrived, so that a caller whose answer was
  /// lost knows where to go on.
  std::uint64_t add_piece(const std::string& job, const std::string& which, std::uint64_t offset,
                          std::string_view text);
  /// Uses a file of /v1/files in place of sent pieces.
  void take_file(const std::string& job, const std::string& which, const std::string& file);
  /// Until let_go(), the job's files stay, however long they wait to be read.
  void hold(const std::string& job);
  void let_go(const std::string& job);
  /// To be called when everything was sent. A digest that nobody knows is empty.
  summary accept(const std::string& job, const training_spec& spec, const std::string& data_sha256,
                 const std::string& validation_sha256);
  /// The files of a job that was accepted earlier.
  std::vector<training_file> files_of(const std::string& job, const training_spec& spec) const;
  /// All that have a folder here: not only jobs that were accepted and are not over, but also those being sent.
  std::vector<std::string> jobs() const;
  /// The journal knows the job: once it is over, nobody asks for it any more.
  void note_accepted(const std::string& job) const;
  void remove(const std::string& job);
  /// Takes up what an earlier head left: `unfinished` are its accepted jobs. Jobs that are over are removed. What
  /// clients have sent stays for an hour: who has asked for a job, or is about to, asks this head again.
  void take_up(const std::vector<std::string>& unfinished);

 private:
  std::filesystem::path part_of(const std::string& job, const std::string& which) const;
  void make_room(const std::string& job);
  void note_sender(const std::string& job);
  void remove_abandoned();
  bool is_silent(const std::string& job);
  bool is_held(const std::string& job);
  training_file name_file(const std::string& job, const std::string& which, const std::string& name,
                          const std::string& sha256);
  void read(const std::string& job, const std::string& file, const std::string& shown, const training_spec& spec,
            summary& into) const;

  options options_;
  std::mutex mutex_;                      ///< guards the next two: a thread of its own reads the data
  std::map<std::string, instant> heard_;  ///< when its sender was last heard, or it was first seen
  std::set<std::string> held_;
};

}  // namespace troupe
