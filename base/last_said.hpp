#pragma once
#include <map>
#include <string>
#include <utility>

namespace troupe {

/// What was said last of each of many things, so that nothing is said twice in a row of one of them: whatever fails is
/// tried again and again.
class last_said {
 public:
  bool is_news(const std::string& of, const std::string& text) {
    if (texts_.size() >= most && !texts_.contains(of)) texts_.clear();
    return std::exchange(texts_[of], text) != text;
  }
  void forget(const std::string& of) { texts_.erase(of); }

 private:
  static constexpr std::size_t most = 1024;
  std::map<std::string, std::string> texts_;
};

}  // namespace troupe
