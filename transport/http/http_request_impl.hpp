// A request as Beast has parsed it, and what follows from that.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include <boost/beast/http/message.hpp>

#include "transport/http/http_message.hpp"

namespace troupe::detail {

namespace beast = boost::beast;
using request_head = beast::http::request_header<>;

struct refusal {
  int status;
  std::string why;
};
/// For what is no request, or too large. `body_bytes`: how long a body may be.
refusal refusal_of(const boost::system::error_code& fault, std::size_t body_bytes);
std::optional<refusal> fault_in(const request_head& head, bool has_body);

/// HTTP/1.0 has no answer before the answer: it would be taken for the answer itself.
bool waits_to_go_on(const request_head& head);
/// Without a body. Its id is the one that the client gave, if that is a name (base/ascii.hpp); otherwise empty.
http_request request_of(const request_head& head);
/// What can be known of a request that is refused before its head was read to the end: its first line, if that has
/// come, the headers that were parsed, and those among what came after them.
http_request unfinished_request(const request_head& parsed, std::string_view unparsed);

}  // namespace troupe::detail
