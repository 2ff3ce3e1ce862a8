#pragma once
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/field_error.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

/// Why a request cannot be served, in the form that OpenAI publishes.
class api_error : public std::runtime_error {
 public:
  api_error(int status, const std::string& message, std::string param = {}, std::string code = {});

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

  api_error& retry_after(duration wait) {
    retry_after_ = wait;
    return *this;
  }
  duration retry_after() const { return retry_after_; }

 private:
  int status_;
  std::string param_, code_;
  duration retry_after_{};
};

/// 400, with the field at fault if that is known.
api_error api_error_of(const input_error& error);

/// 503, for a moment.
api_error unavailable(const std::string& message);
/// 404: neither the base nor an adapter has this name.
api_error unknown_model(std::string_view name);

/// {"error":{"message","type","param","code"}}
std::string error_json(const api_error& error);
/// What error_json() wrote, for APIs that say it in another form.
struct told_error {
  std::string message, type, param, code;
};
told_error read_error(std::string_view json);
/// "message":…,"param":…,"code":…
std::string error_fields(const api_error& error);
http_response error_response(const api_error& error);

}  // namespace troupe
