#include "actors/http/files/form_data.hpp"

#include <algorithm>

#include "base/ascii.hpp"
#include "base/error.hpp"

namespace troupe {
namespace {

constexpr std::size_t most_parts = 16;

/// A text up to the quote that ends it. Clients write a quote in it as \" and a backslash often as \\.
std::string up_to_quote(std::string_view text) {
  std::string value;
  for (std::size_t i = 0; i < text.size() && text[i] != '"'; ++i) {
    const std::string_view pair = text.substr(i, 2);
    if (pair == R"(\")" || pair == R"(\\)") ++i;
    value += text[i];
  }
  return value;
}

/// The value of key="…" or key=… in a header. `key`: in lower case.
std::string parameter_of(std::string_view header, std::string_view key) {
  const std::string lower = lower_case(header);
  for (std::size_t at = lower.find(key); at != lower.npos; at = lower.find(key, at + 1)) {
    const bool whole = at > 0 && (header[at - 1] == ' ' || header[at - 1] == ';');
    std::string_view rest = header.substr(at + key.size());
    if (!whole || !rest.starts_with('=')) continue;
    rest.remove_prefix(1);
    if (rest.starts_with('"')) return up_to_quote(rest.substr(1));
    return std::string(rest.substr(0, rest.find_first_of("; \r\n")));
  }
  return {};
}

/// Blanks may stand between a boundary and its line's end.
void skip_blanks(std::string_view& behind_boundary) {
  const std::size_t end = behind_boundary.find_first_not_of(" \t");
  if (end != behind_boundary.npos && behind_boundary.substr(end).starts_with("\r\n"))
    behind_boundary.remove_prefix(end);
}

form_part read_part(std::string_view text) {
  const std::size_t head_end = text.find("\r\n\r\n");
  if (head_end == text.npos) refuse("the form has a part without a head");
  form_part part;
  std::string_view head = text.substr(0, head_end);
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(line.size() + 2, head.size()));
    if (!lower_case(line).starts_with("content-disposition:")) continue;
    part.name = parameter_of(line, "name");
    part.filename = parameter_of(line, "filename");
  }
  part.content = text.substr(head_end + 4);
  return part;
}

}  // namespace

std::vector<form_part> parse_form(std::string_view content_type, std::string_view body) {
  const std::string boundary = parameter_of(content_type, "boundary");
  if (!lower_case(content_type).starts_with("multipart/form-data")) refuse("the body is no multipart/form-data");
  if (boundary.empty()) refuse("content-type names no boundary: let the client write that header itself");
  const std::string line = "--" + boundary, separator = "\r\n" + line;
  if (!body.starts_with(line)) {  // what stands before the first boundary means nothing
    const std::size_t first = body.find(separator);
    if (first == body.npos) refuse("the form has no line that is its boundary");
    body.remove_prefix(first + 2);
  }
  body.remove_prefix(line.size());
  skip_blanks(body);
  std::vector<form_part> parts;
  while (body.starts_with("\r\n")) {
    const std::size_t end = body.find(separator, 2);
    if (end == body.npos) refuse("the form does not end with its boundary");
    if (parts.size() == most_parts) refuse("the form has more than {} parts", most_parts);
    parts.push_back(read_part(body.substr(2, end - 2)));
    body.remove_prefix(end + separator.size());
    skip_blanks(body);
  }
  // Otherwise a file that happens to have the boundary at a line's beginning would be kept without what follows.
  if (!body.starts_with("--"))
    refuse("the form does not end with its boundary, or a part of it has the boundary inside");
  return parts;
}

}  // namespace troupe
