#include "transport/http/http_message.hpp"

#include <algorithm>
#include <array>

#include "base/percent_decoded.hpp"

namespace troupe {
namespace {

constexpr std::array<std::pair<int, std::string_view>, 22> status_texts{{
    {200, "OK"},
    {201, "Created"},
    {204, "No Content"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"},
    {529, "Overloaded"},  // Anthropic's own
}};

/// As forms are written, where + is a blank.
std::string field_decoded(std::string_view text) {
  std::string spaced(text);
  std::replace(spaced.begin(), spaced.end(), '+', ' ');
  return percent_decoded(spaced);
}

}  // namespace

std::string_view http_request::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers)
    if (name == lower_case_name) return value;
  return {};
}

std::vector<std::pair<std::string, std::string>> http_request::query_fields() const {
  std::vector<std::pair<std::string, std::string>> fields;
  std::string_view rest = query;
  while (!rest.empty()) {
    const std::string_view field = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    const std::size_t equals = field.find('=');
    fields.emplace_back(field_decoded(field.substr(0, equals)),
                        equals == field.npos ? std::string() : field_decoded(field.substr(equals + 1)));
  }
  return fields;
}

std::string http_request::query_value(std::string_view name) const {
  for (auto& [key, value] : query_fields())
    if (key == name) return value;
  return {};
}

std::string_view http_status_text(int status) {
  for (const auto& [code, text] : status_texts)
    if (code == status) return text;
  return "Unknown";
}

}  // namespace troupe
