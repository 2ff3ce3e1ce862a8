#include "transport/http/http_router.hpp"

#include <algorithm>

namespace troupe {
namespace {

/// None where it does not begin with a slash.
std::vector<std::string> parts_of(std::string_view path) {
  std::vector<std::string> parts;
  if (!path.starts_with('/')) return parts;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = std::min(path.find('/'), path.size());
    parts.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return parts;
}

bool matches(const std::vector<std::string>& route, const std::vector<std::string>& path,
             std::vector<std::string>& path_parts) {
  path_parts.clear();
  const bool takes_rest = !route.empty() && route.back().ends_with("...}");
  if (route.size() > path.size() || (route.size() < path.size() && !takes_rest)) return false;
  for (std::size_t i = 0; i < route.size(); ++i) {
    if (route[i].starts_with('{'))
      path_parts.push_back(path[i]);
    else if (route[i] != path[i])
      return false;
  }
  for (std::size_t i = route.size(); i < path.size(); ++i) path_parts.back() += "/" + path[i];
  return true;
}

}  // namespace

void http_router::add(std::string_view method, std::string_view path, http_handler handler) {
  routes_.push_back({std::string(method), parts_of(path), std::move(handler)});
}

http_router::match http_router::find(std::string_view method, std::string_view path) const {
  const std::vector<std::string> parts = parts_of(path);
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  match found;
  for (const route& each : routes_) {
    if (!matches(each.parts, parts, found.path_parts)) continue;
    if (each.method == wanted) {
      found.handler = &each.handler;
      return found;
    }
    found.allowed += (found.allowed.empty() ? "" : ", ") + each.method;
  }
  return found;
}

}  // namespace troupe
