#include "model/engine/engine_request.hpp"

namespace troupe {

sampling_params engine_request::sampling_from(std::size_t length) const {
  sampling_params rest = sampling;
  if (length > sequence.prompt.size()) rest.prompt_logprobs.reset();  // these came with the first token
  return rest;
}

}  // namespace troupe
