#pragma once
#include <string>
#include <string_view>

#include "model/arch/loaded_model.hpp"
#include "model/formats/model_files.hpp"

namespace troupe {

/// How a matrix is stored where a model is quantized to `asked`: as asked, except that q4 and u4g32 have q8 for
/// embeddings, head, keys and values.
scheme stored_scheme(scheme asked, std::string_view name);
/// Likewise for a weight that a file gives, by all of the options; without a scheme as the file has it.
scheme stored_scheme(const load_options& options, const std::string& name, const weight_source& source);

/// `options`, where a name that fits the head means the embeddings if they are the head.
load_options with_tied_head(load_options options, const model_config& config);

/// Refuses `keep` where it names nothing: a field_error.
void check_keep(const model_files& source, const load_options& options);

/// Whether a file's blocks or codes are the scheme's own, so that they need not be quantized again.
bool keeps_bits(const weight_source& source, scheme kind);

}  // namespace troupe
