// The body of a request that asks the model, or what asking it would take.
#pragma once
#include <functional>

#include "actors/http/api_context.hpp"

namespace troupe {

class request_fields;
struct chat_order;
struct served_model;

/// Calls `read` with the body: at once, or on the thread for long work where reading takes long. Throws input_error if
/// it is none.
void with_asked_body(const api_call& call, std::function<void(const request_fields& body)> read);

/// Answers with the number of tokens that the prompt of what the body asks has. `object`: the kind that the answer says
/// it is; null: it says none.
void count_prompt(const api_call& call, chat_order (*read)(const request_fields& from, const served_model& served),
                  const char* object);

}  // namespace troupe
