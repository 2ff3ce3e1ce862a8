// What is served at which path. Each function adds its routes to `to`.
#pragma once
#include <functional>
#include <memory>
#include <string_view>

#include "actors/http/api_context.hpp"
#include "actors/http/api_error.hpp"
#include "transport/http/http_router.hpp"

namespace troupe {

/// Adds routes. Their handlers may throw api_error and input_error.
class api_routes {
 public:
  using api_handler = std::function<void(const api_call&)>;

  api_routes(http_router& to, std::shared_ptr<api_context> context) : to_(to), context_(std::move(context)) {}

  /// Needs a key, if there are keys.
  void add(std::string_view method, std::string_view path, api_handler handler);
  /// The same, and counts against the key's limits: for requests that wait while the cluster computes.
  void add_limited(std::string_view method, std::string_view path, api_handler handler);
  /// For everyone, without a key.
  void add_open(std::string_view method, std::string_view path, api_handler handler);

 private:
  void add_guarded(std::string_view method, std::string_view path, std::function<void(api_call&)> handle);

  http_router& to_;
  std::shared_ptr<api_context> context_;
};

void add_model_routes(api_routes& to);        ///< models and adapters
void add_text_routes(api_routes& to);         ///< answers/: all that the model answers, and tokens
void add_message_routes(api_routes& to);      ///< anthropic/: what Anthropic's API has besides answers
void add_generate_routes(api_routes& to);     ///< lorax/: LoRAX's and TGI's own API
void add_status_routes(api_routes& to);       ///< status/: health, metrics and the page
void add_file_routes(api_routes& to);         ///< files/
void add_batch_routes(api_routes& to);        ///< jobs/
void add_fine_tuning_routes(api_routes& to);  ///< jobs/

}  // namespace troupe
