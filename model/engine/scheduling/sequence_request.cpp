#include "model/engine/scheduling/sequence_request.hpp"

namespace troupe {

std::string_view name_of(refusal reason) {
  switch (reason) {
    case refusal::empty_prompt:
      return "the prompt is empty";
    case refusal::prompt_too_long:
      return "the prompt leaves no room in the context";
    case refusal::bad_limit:
      return "the number of tokens is negative";
    case refusal::bad_answers:
      return "more answers (n) are asked for than run at a time: use fewer, or raise scheduler.max_sequences";
    case refusal::budget_too_small:
      return "the memory for keys and values cannot hold the sequence";
    case refusal::unknown_adapter:
      return "there is no such adapter";
    case refusal::queue_full:
      return "the queue is full";
  }
  return "unknown";
}

std::string_view name_of(end_reason reason) {
  return reason == end_reason::stop ? "stop" : "length";
}

}  // namespace troupe
