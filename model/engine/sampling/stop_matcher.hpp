#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

/// Ends a stream of text before the first stop string in it, wherever the pieces of the stream happen to be cut. The
/// first is the one that ends first; of several that end at one byte, the longest. Text that could be the beginning of
/// a stop string is held back until it is certain. Pieces and stop strings of whole characters give whole characters.
/// Copies share the stop strings, of which a request may have many long ones.
class stop_matcher {
 public:
  /// Empty strings are passed over. `keeps_stop`: the stop string that ends the stream is its last text.
  explicit stop_matcher(std::vector<std::string> stops = {}, bool keeps_stop = false);

  /// The text that became certain with this piece; nothing more once stopped() is true. Stop strings that end in a
  /// piece in which they do not count are text.
  std::string push(std::string_view piece, bool stops_count = true);
  /// The text held back, for a stream that ended for another reason.
  std::string finish();

  bool stopped() const { return matched_.has_value(); }
  /// The stop string that was found; nullptr before.
  const std::string* matched() const { return matched_ ? &(*patterns_)[*matched_].text : nullptr; }

 private:
  /// Knuth-Morris-Pratt: `fallbacks[n]` is the longest proper beginning of the text that ends its first n bytes.
  struct pattern {
    std::string text;
    std::vector<std::size_t> fallbacks;

    explicit pattern(std::string stop);
    /// Bytes of the text that a stream ends with, which ended with `seen` of them before this byte.
    std::size_t after(std::size_t seen, char byte) const;
  };
  void advance(char byte, bool stops_count);

  std::shared_ptr<const std::vector<pattern>> patterns_;
  std::vector<std::size_t> seen_;  ///< of each pattern: bytes of its text that the stream ends with
  bool keeps_stop_;
  std::string held_;
  std::optional<std::size_t> matched_;  ///< among the patterns
};

}  // namespace troupe
