// Describes a fine-tune as JSON: the job's options in the journal, and the order that a trainer gets.
#pragma once
#include <cstdint>
#include <string>

#include "model/train/parameters/lora_options.hpp"
#include "model/train/run/training_options.hpp"

namespace troupe {

struct training_spec {
  std::string adapter;              ///< the name to publish as
  std::string data_name;            ///< the user's name of the file; its ending says the format
  std::string validation_name;      ///< empty: a share of the data is held out
  std::string owner;                ///< a key that may replace no adapter of others; empty: an administrator's, who may
  bool publish_best = false;        ///< publish the weights that did best on the held-out data instead of the last ones
  std::int64_t validate_every = 0;  ///< steps; 0: once an epoch
  std::int64_t checkpoint_every = 0;  ///< steps; 0: only by time
  std::int64_t trainers = 1;          ///< that share its passes, at most; the result is the same for any number
  lora_options lora;
  training_options run;
  // Written by the head that accepts the job; 0 before.
  std::uint64_t base = 0;     ///< fingerprint of the model that it runs
  std::uint64_t reading = 0;  ///< fingerprint of the data as the head's tokenizer and template read it (reading_of)

  bool has_validation() const { return !validation_name.empty(); }
  std::string data_file() const { return stored_name("data", data_name); }
  std::string validation_file() const { return stored_name("validation", validation_name); }

 private:
  static std::string stored_name(const char* what, const std::string& name);
};

/// Throws input_error if something is missing, unknown or out of range. `where` names the text in errors.
training_spec read_training_spec(const std::string& text, const std::string& where);
/// Fingerprint of data and validation as tokens. A different one means another tokenizer or template.
std::uint64_t reading_of(std::uint64_t data, std::uint64_t validation);
/// Writes what read_training_spec reads.
std::string to_json(const training_spec& spec);

}  // namespace troupe
