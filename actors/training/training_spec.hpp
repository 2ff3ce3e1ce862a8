// What a fine-tune is told to be, as JSON: the job's options in the journal, and what a trainer is given.
#pragma once
#include <cstdint>
#include <string>

#include "model/train/lora_parameters.hpp"
#include "model/train/training_run.hpp"

namespace troupe {

struct training_spec {
  std::string adapter;                ///< the name to publish as
  std::string data_name;              ///< as the user calls the file: what it ends with says what it is
  std::string validation_name;        ///< empty: a share of the data is held out
  bool publish_best = false;          ///< the weights that did best with what was held out, instead of the last ones
  std::int64_t validate_every = 0;    ///< steps; 0: an epoch
  std::int64_t checkpoint_every = 0;  ///< steps; 0: by time alone
  std::int64_t trainers = 1;          ///< that share its passes, at most; changes nothing in what comes out
  lora_options lora;
  training_options run;
  // What the head that takes the job writes in it; 0 where nobody has.
  std::uint64_t base = 0;     ///< fingerprint of the model that it runs
  std::uint64_t reading = 0;  ///< of the data as its tokenizer and template read it (reading_of)

  bool has_validation() const { return !validation_name.empty(); }
  std::string data_file() const { return stored_name("data", data_name); }
  std::string validation_file() const { return stored_name("validation", validation_name); }

 private:
  static std::string stored_name(const char* what, const std::string& name);
};

/// Throws input_error where something is missing, unknown or out of its range. `where` names the text in errors.
training_spec read_training_spec(const std::string& text, const std::string& where);
/// Of data and validation as tokens, by their fingerprints: who comes to another has another tokenizer or template.
std::uint64_t reading_of(std::uint64_t data, std::uint64_t validation);
/// What read_training_spec reads, whole.
std::string to_json(const training_spec& spec);

}  // namespace troupe
