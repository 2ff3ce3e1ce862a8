#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "transport/http/http_exchange.hpp"

namespace troupe {

/// Which handler answers which method and path. Filled before the server starts, only read afterwards.
class http_router {
 public:
  /// "/v1/files/{id}/content": {…} stands for one part of a path, which comes as request.path_parts;
  /// {id...} at the end for all that is left, slashes too, as in names that clients write escaped or plain.
  void add(std::string_view method, std::string_view path, http_handler handler);

  /// What is found for a request; where nothing is, `allowed` says the methods that the path has, comma-separated.
  struct match {
    const http_handler* handler = nullptr;
    std::vector<std::string> path_parts;
    std::string allowed;
  };
  /// HEAD is answered by GET's handler.
  match find(std::string_view method, std::string_view path) const;

 private:
  struct route {
    std::string method;
    std::vector<std::string> parts;
    http_handler handler;
  };
  std::vector<route> routes_;
};

}  // namespace troupe
