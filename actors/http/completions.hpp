#pragma once
#include "actors/http/api_context.hpp"

namespace troupe {

/// POST /v1/completions. `owner`: whose key it came with.
void serve_completion(const std::shared_ptr<api_context>& context, const http_request& request,
                      const std::string& owner, const std::shared_ptr<http_exchange>& exchange);
/// POST /v1/chat/completions
void serve_chat(const std::shared_ptr<api_context>& context, const http_request& request, const std::string& owner,
                const std::shared_ptr<http_exchange>& exchange);

/// POST /v1/embeddings
void serve_embeddings(const std::shared_ptr<api_context>& context, const http_request& request,
                      const std::string& owner, const std::shared_ptr<http_exchange>& exchange);

}  // namespace troupe
