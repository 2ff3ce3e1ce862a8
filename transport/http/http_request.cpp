#include <fmt/format.h>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

#include "base/ascii.hpp"
#include "base/percent_decoded.hpp"
#include "transport/http/http_request_impl.hpp"

namespace troupe::detail {
namespace {

/// Clients that speak to a proxy write the whole address: http://host/path.
std::string_view without_host(std::string_view target) {
  constexpr std::string_view scheme = "http://";
  if (!target.starts_with(scheme)) return target;
  target.remove_prefix(scheme.size());
  const std::size_t path = target.find_first_of("/?");
  return path == target.npos ? "/" : target.substr(path);
}

/// '*' is the whole server, for OPTIONS.
bool is_target(std::string_view target) {
  return target.starts_with('/') || target == "*" || without_host(target) != target;
}

http_headers headers_of(const request_head& head) {
  http_headers headers;
  for (const auto& field : head)
    headers.emplace_back(lower_case(std::string(field.name_string())), std::string(field.value()));
  return headers;
}

/// If that is a name: it comes back in the answer, and stands in logs.
void take_id(http_request& request) {
  const std::string_view id = request.header("x-request-id");
  if (is_name(id)) request.id = id;
}

}  // namespace

refusal refusal_of(const boost::system::error_code& fault, std::size_t body_bytes) {
  using beast::http::error;
  if (fault == error::body_limit)
    return {413, fmt::format("the body is longer than {} bytes: send less at a time", body_bytes)};
  if (fault == error::header_limit) return {431, "the head of the request is too large"};
  if (fault == error::bad_version) return {505, "HTTP/1.1 is spoken here, with CR LF at the ends of lines"};
  return {400, "this is no HTTP request"};
}

std::optional<refusal> fault_in(const request_head& head, bool has_body) {
  using beast::http::field;
  if (!is_target({head.target().data(), head.target().size()}))
    return refusal{400, "a request asks for a path, which begins with /, or for a whole address: http://HOST/PATH"};
  if (head.version() >= 11 && head.count(field::host) != 1)
    return refusal{400, "a request of HTTP/1.1 names one host: host: NAME"};
  // How long a body in another coding is can be guessed only: a proxy may take its end for the next request.
  if (head.count(field::transfer_encoding) > 0 && !beast::iequals(head[field::transfer_encoding], "chunked"))
    return refusal{501, "of transfer-encodings only chunked is read"};
  const std::string encoding(head[field::content_encoding]);
  if (has_body && !encoding.empty() && !beast::iequals(encoding, "identity"))
    return refusal{415, fmt::format("a body with content-encoding {} is not read: send it as it is",
                                    std::string_view(encoding).substr(0, 64))};
  return {};
}

bool waits_to_go_on(const request_head& head) {
  return head.version() >= 11 && beast::iequals(head[beast::http::field::expect], "100-continue");
}

http_request request_of(const request_head& head) {
  http_request request;
  request.method = std::string(head.method_string());
  const std::string_view target = without_host({head.target().data(), head.target().size()});
  const std::size_t question = target.find('?');
  request.target = target.substr(0, question);
  request.path = percent_decoded(request.target);
  if (request.path.size() > 1 && request.path.ends_with('/')) request.path.pop_back();
  if (question != target.npos) request.query = target.substr(question + 1);
  request.headers = headers_of(head);
  take_id(request);
  return request;
}

http_request unfinished_request(const request_head& parsed, std::string_view unparsed) {
  http_request request = request_of(parsed);
  // What has no end yet may be the beginning of something else.
  for (std::size_t end = 0; (end = unparsed.find("\r\n")) != unparsed.npos; unparsed.remove_prefix(end + 2)) {
    const std::string_view line = unparsed.substr(0, end);
    const std::size_t colon = line.find(": ");
    if (colon != line.npos) request.headers.emplace_back(lower_case(line.substr(0, colon)), line.substr(colon + 2));
  }
  take_id(request);
  return request;
}

}  // namespace troupe::detail
