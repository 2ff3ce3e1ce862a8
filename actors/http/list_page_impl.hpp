// A page of a list, chosen by `after` and `limit` in the query. For .cpp files only.
#pragma once
#include <algorithm>
#include <string>
#include <utility>

#include "actors/json_dump_impl.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

class list_page {
 public:
  /// `usual` and `most` entries without a limit in the query, and with any.
  explicit list_page(const http_request& request, std::size_t usual = 20, std::size_t most = 100)
      : after_(request.query_value("after")), most_(usual) {
    const std::string limit = request.query_value("limit");
    if (!limit.empty() && limit.size() <= 6 && limit.find_first_not_of("0123456789") == limit.npos)
      most_ = std::clamp<std::size_t>(std::stoul(limit), 1, most);
    begun_ = after_.empty();
  }

  /// For a source that skips to `after` itself.
  std::string take_after() {
    begun_ = true;
    return std::exchange(after_, {});
  }
  /// How many entries to ask the source for: one more than the page has, to know whether there are more.
  std::size_t wanted() const { return most_ + 1; }

  /// Takes the next entry of the whole list; calls `write` for its JSON if it is on this page. Returns false if the
  /// page is full and there are more.
  template <class Write>
  bool add(const std::string& id, Write write) {
    if (begun_ && data_.size() == most_) {
      has_more_ = true;
      return false;
    }
    if (begun_) data_.push_back(write());
    begun_ = begun_ || id == after_;
    return true;
  }

  json finish() {
    return {{"object", "list"},
            {"first_id", data_.empty() ? json("") : data_.front().at("id")},
            {"last_id", data_.empty() ? json("") : data_.back().at("id")},
            {"has_more", has_more_},
            {"data", std::move(data_)}};
  }

 private:
  std::string after_;
  std::size_t most_;
  bool begun_ = false, has_more_ = false;
  json data_ = json::array();
};

}  // namespace troupe
