#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

using http_headers = std::vector<std::pair<std::string, std::string>>;

struct http_request {
  std::string method;    ///< upper case, as sent
  std::string target;    ///< the path as it was sent, without the query
  std::string path;      ///< the same percent-decoded, without a slash at its end: clients write it or not
  std::string query;     ///< as sent, without the '?'
  http_headers headers;  ///< names in lower case
  std::string body;
  std::string id;                       ///< what x-request-id of the response says
  std::string client;                   ///< the address that it came from
  std::vector<std::string> path_parts;  ///< what stands for {…} in the route's path, in order

  /// Empty where there is none; the first of several.
  std::string_view header(std::string_view lower_case_name) const;
  /// The query's names and values, decoded.
  std::vector<std::pair<std::string, std::string>> query_fields() const;
  /// A field of the query, decoded; empty where there is none.
  std::string query_value(std::string_view name) const;
};

struct http_response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  http_headers headers = {};
};

std::string_view http_status_text(int status);

}  // namespace troupe
