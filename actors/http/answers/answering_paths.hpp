#pragma once
#include "actors/http/served_model.hpp"
#include "actors/requests/answer_order.hpp"

namespace troupe {

class request_fields;

// Reads what a request asks, and makes the format of its answer. Throws like read_order.
asked_answer read_completion(const request_fields& from, const served_model& served);
asked_answer read_chat_completion(const request_fields& from, const served_model& served);  // chats/chat.cpp
asked_answer read_response(const request_fields& from, const served_model& served);         // chats/responses.cpp
asked_answer read_message(const request_fields& from, const served_model& served);          // anthropic/messages.cpp
asked_answer read_embeddings(const request_fields& from, const served_model& served);

/// The paths, for POST and for batches.
struct answering_path {
  const char* path;
  asked_answer (*read)(const request_fields& from, const served_model& served);
};
inline constexpr answering_path answering_paths[] = {{"/v1/completions", read_completion},
                                                     {"/v1/chat/completions", read_chat_completion},
                                                     {"/v1/responses", read_response},
                                                     {"/v1/messages", read_message},
                                                     {"/v1/embeddings", read_embeddings}};

}  // namespace troupe
