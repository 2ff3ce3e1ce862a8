#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/cli11_fwd.hpp"
#include "model/engine/sampling/sampling_params.hpp"

namespace troupe {

/// What is to be answered: a text, or tokens.
struct prompt_options {
  std::optional<std::string> prompt;
  std::vector<token_id> tokens;
  bool chat = false;   ///< the text is a user's message
  std::string system;  ///< a message before it
};

/// How an answer is chosen and how it is printed: the same flags for whatever command makes one.
struct sampling_options {
  sampling_params params;
  std::vector<std::string> biases;
  bool json = false;
  bool draws_seed = false;                  ///< of a job each line's
  std::string json_schema, regex, grammar;  ///< of the answer's form: a file, an expression, a file
};

/// --prompt, --prompt-file, --tokens, --chat and --system. `verb`: what the command does with a prompt.
void add_prompt(CLI::App& command, prompt_options& options, const std::string& verb);
/// Refuses --chat and --system where they mean nothing.
void check_chat(const prompt_options& options);
/// All flags, with greedy answers of 128 tokens where none is given. `json_help`: what --json prints; without it the
/// command has neither --json nor --logprobs.
void add_sampling(CLI::App& command, sampling_options& options, const std::string& json_help);
/// Checks the flags as far as that is possible without a model. Throws input_error.
sampling_params checked_sampling(const sampling_options& options);

}  // namespace troupe
