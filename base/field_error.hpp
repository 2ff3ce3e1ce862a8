#pragma once
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace troupe {

/// The code of a prompt that the context cannot hold.
constexpr const char* too_long_code = "context_length_exceeded";

/// What is wrong with one field of a request.
class field_error : public input_error {
 public:
  field_error(std::string_view field, const std::string& message, std::string code = {})
      : input_error(message), field_(field), code_(std::move(code)) {}

  const std::string& field() const { return field_; }
  const std::string& code() const { return code_; }  ///< OpenAI's word for the fault; may be empty

 private:
  std::string field_, code_;
};

[[noreturn]] inline void refuse_field(std::string_view field, const std::string& message, std::string code = {}) {
  throw field_error(field, message, std::move(code));
}

}  // namespace troupe
