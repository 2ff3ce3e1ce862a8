// JSON in the bodies of requests and responses. For .cpp files only.
#pragma once
#include <memory>
#include <string_view>

#include "actors/requests/request_fields_impl.hpp"
#include "transport/http/http_exchange.hpp"

namespace troupe {

inline json parse_body(std::string_view body) {
  return parse_object(body, "the body");
}

inline void reply_json(const std::shared_ptr<http_exchange>& exchange, const json& body) {
  exchange->reply({.body = dump(body)});
}

}  // namespace troupe
