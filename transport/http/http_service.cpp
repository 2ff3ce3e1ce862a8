#include "transport/http/http_service.hpp"

#include <fmt/format.h>

namespace troupe {

std::string http_service::error_body(int status, std::string_view why) const {
  return fmt::format(R"({{"error":{{"message":"{}","type":"http_error","param":null,"code":"{}"}}}})", why, status);
}

}  // namespace troupe
