// How tokens are chosen in the fields of a request, in OpenAI's names and vLLM's: from HTTP and from a job's line
// alike.
#pragma once
#include "model/engine/sampling/sampling_params.hpp"

namespace troupe {

class request_fields;

/// What the request says; the rest of `to` stays. Left to the caller: how much is answered, and what is told of it.
/// Throws field_error.
void read_sampling(const request_fields& from, sampling_params& to);

}  // namespace troupe
