#include "cluster/config/config_address.hpp"

#include <algorithm>

#include "base/ascii.hpp"

namespace troupe {

bool is_any_host(std::string_view host) {
  return host == "*" || host == "0.0.0.0" || host == "::";
}

bool is_web_origin(std::string_view text) {
  const std::size_t scheme_end = text.find("://");
  if (scheme_end == text.npos || text != lower_case(text)) return false;
  const std::string_view scheme = text.substr(0, scheme_end), place = text.substr(scheme_end + 3);
  const bool is_scheme = !scheme.empty() && std::all_of(scheme.begin(), scheme.end(), [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '+' || c == '.';
  });
  const bool has_own_port =
      (scheme == "https" && place.ends_with(":443")) || (scheme == "http" && place.ends_with(":80"));
  if (!is_scheme || has_own_port || place.starts_with('*')) return false;
  return split_host_port(place).has_value() || split_host_port(std::string(place) + ":80").has_value();
}

std::string tcp_endpoint(const std::string& host, int port) {
  return "tcp://" + text_of(host_port{host, port});
}

std::string reachable_address(const std::string& listen, const std::string& host) {
  const auto place = split_host_port(listen);
  return place && is_any_host(place->host) ? text_of(host_port{host, place->port}) : listen;
}

std::string reachable_endpoint(const std::string& listen, const std::string& host) {
  const auto place = split_endpoint(listen);
  return place && is_any_host(place->host) ? tcp_endpoint(host, place->port) : listen;
}

}  // namespace troupe
