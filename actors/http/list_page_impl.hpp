// A page of a list, chosen by `after` and `limit` in the query. For .cpp files only.
#pragma once
#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "transport/http/http_message.hpp"

namespace troupe {

class list_page {
 public:
  list_page(const http_request& request, std::size_t usual, std::size_t most)
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

  /// Takes the next entry of the whole list; calls `made` to write it if it is on this page. Returns false if the page
  /// is full and there are more.
  template <class Make>
  bool add(const std::string& id, Make made) {
    if (begun_ && data_.size() == most_) {
      more_ = true;
      return false;
    }
    if (begun_) data_.push_back(made());
    begun_ = begun_ || id == after_;
    return true;
  }

  nlohmann::ordered_json finish() {
    const auto id_of = [](const nlohmann::ordered_json& each) { return each.at("id"); };
    nlohmann::ordered_json made{{"object", "list"}};
    made["first_id"] = data_.empty() ? nlohmann::ordered_json("") : id_of(data_.front());
    made["last_id"] = data_.empty() ? nlohmann::ordered_json("") : id_of(data_.back());
    made["has_more"] = more_;
    made["data"] = std::move(data_);
    return made;
  }

 private:
  std::string after_;
  std::size_t most_;
  bool begun_ = false, more_ = false;
  nlohmann::ordered_json data_ = nlohmann::ordered_json::array();
};

}  // namespace troupe
