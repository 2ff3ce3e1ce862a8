// A page of a list, chosen by `after`, `limit` and `order` in the query. For .cpp files only.
#pragma once
#include <string>
#include <utility>

#include "actors/json_dump_impl.hpp"
#include "base/field_error.hpp"
#include "base/number_in.hpp"
#include "transport/http/http_message.hpp"

namespace troupe {

/// What a query may ask of a list.
struct list_offer {
  std::size_t usual = 20, most = 100;  ///< entries of a page, without a limit in the query and with any
  bool has_oldest_first = false;
};

class list_page {
 public:
  /// Throws field_error if the query asks for what is not offered.
  explicit list_page(const http_request& request, const list_offer& offer = {})
      : after_(request.query_value("after")),
        most_(limit_of(request, offer)),
        oldest_first_(wants_oldest_first(request, offer)),
        begun_(after_.empty()) {}

  bool oldest_first() const { return oldest_first_; }

  /// For a source that skips to `after` itself.
  std::string take_after() {
    begun_ = true;
    return std::exchange(after_, {});
  }
  /// How many entries to ask the source for: one more than the page has, to know whether there are more.
  std::size_t wanted() const { return most_ + 1; }

  /// Whether the next entry of the whole list is on this page.
  bool takes_next() const { return begun_ && data_.size() < most_; }
  /// Ends the page before it is full, with what was added, where there are more.
  void end_early() { has_more_ = true; }

  /// Takes the next entry of the whole list; calls `write` for its JSON if it is on this page. Returns false if the
  /// page is full and there are more.
  template <class Write>
  bool add(const std::string& id, Write write) {
    if (begun_ && data_.size() == most_) {
      has_more_ = true;
      return false;
    }
    if (begun_) data_.push_back(write());
    pass(id);
    return true;
  }
  /// The next entry has a place in the list, and is not shown.
  void pass(const std::string& id) { begun_ = begun_ || id == after_; }

  /// Throws field_error where the page was to begin behind an entry that did not come: an empty one would look like the
  /// list's end.
  json finish() {
    if (!begun_) refuse_field("after", fmt::format("after names no entry of the list: {}", after_.substr(0, 80)));
    return {{"object", "list"},
            {"first_id", data_.empty() ? json("") : data_.front().at("id")},
            {"last_id", data_.empty() ? json("") : data_.back().at("id")},
            {"has_more", has_more_},
            {"data", std::move(data_)}};
  }

 private:
  static std::size_t limit_of(const http_request& request, const list_offer& offer) {
    const std::string given = request.query_value("limit");
    if (given.empty()) return offer.usual;
    const auto limit = number_in<std::size_t>(given);
    if (!limit || *limit < 1 || *limit > offer.most)
      refuse_field("limit", fmt::format("limit is {}: use 1 to {}", given.substr(0, 64), offer.most), "invalid_value");
    return *limit;
  }
  static bool wants_oldest_first(const http_request& request, const list_offer& offer) {
    const std::string order = request.query_value("order");
    if (order == "asc" && offer.has_oldest_first) return true;
    if (!order.empty() && order != "desc")
      refuse_field("order", offer.has_oldest_first ? "order should be asc or desc" : "order should be desc",
                   "unsupported_value");
    return false;
  }

  std::string after_;
  std::size_t most_;
  bool oldest_first_, begun_, has_more_ = false;
  json data_ = json::array();
};

}  // namespace troupe
