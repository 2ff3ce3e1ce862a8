#include "actors/http/api_error.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/http/json_text.hpp"

namespace troupe {
namespace {

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 429:
      return "rate_limit_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

api_error::api_error(int status, const std::string& message, std::string param, std::string code)
    : std::runtime_error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

std::string error_fields(const api_error& error) {
  return fmt::format(R"("message":{},"param":{},"code":{})", json_text(error.what()), json_text_or_null(error.param()),
                     json_text_or_null(error.code()));
}

std::string error_json(const api_error& error) {
  return fmt::format(R"({{"error":{{{},"type":"{}"}}}})", error_fields(error), type_of(error.status()));
}

told_error read_error(std::string_view text) {
  const auto all = nlohmann::json::parse(text, nullptr, false);
  const auto error = all.is_object() ? all.value("error", nlohmann::json::object()) : nlohmann::json::object();
  const auto said = [&](const char* key) {
    const auto found = error.find(key);
    return found != error.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  return {said("message"), said("type"), said("param"), said("code")};
}

http_response error_response(const api_error& error) {
  http_response response{.status = error.status(), .body = error_json(error)};
  if (error.status() == 401) response.headers.emplace_back("www-authenticate", "Bearer");
  if (error.retry_after() > duration{}) {
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(error.retry_after());
    response.headers.emplace_back("retry-after-ms", fmt::format("{}", wait.count()));
    response.headers.emplace_back("retry-after",
                                  fmt::format("{}", std::chrono::ceil<std::chrono::seconds>(wait).count()));
  }
  return response;
}

api_error unavailable(const std::string& message) {
  return api_error(503, message, {}, "service_unavailable").retry_after(std::chrono::seconds(1));
}

api_error unknown_model(std::string_view name) {
  const std::size_t text_end = name.find('\0');  // an error's text ends there, too
  const std::string_view shown = name.substr(0, std::min<std::size_t>(128, text_end));
  return api_error(404, fmt::format("the model {} does not exist: see /v1/models", shown), "model", "model_not_found");
}

api_error api_error_of(const input_error& error) {
  const auto* of_field = dynamic_cast<const field_error*>(&error);
  if (!of_field) return api_error(400, error.what());
  return api_error(400, error.what(), of_field->field(), of_field->code());
}

}  // namespace troupe
