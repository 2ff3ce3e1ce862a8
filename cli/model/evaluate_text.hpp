#pragma once
#include <string>

#include "base/mapped_file.hpp"
#include "cli/model/model_options.hpp"
#include "model/engine/evaluate.hpp"
#include "model/text/model_text.hpp"

namespace troupe {

/// A text that the user named; "-" is standard input, which this waits for. Refuses lines of examples: how well the
/// braces around these are predicted says nothing.
mapped_file text_in(const std::string& file);
/// evaluate() in the runtime's context, with progress shown.
evaluation evaluate_text(runtime& run, const tokenizer& tokens, const mapped_file& text, const std::string& what);

}  // namespace troupe
