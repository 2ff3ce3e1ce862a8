// Where ranks find each other before they are connected: rank 0 listens, the others come, and everyone hears everyone's
// word (an address, a key). The port belongs to the process and serves one group after the other; a rank of another
// group is sent away and may come again.
#pragma once
#include <chrono>
#include <cstddef>
#include <stop_token>
#include <string>
#include <vector>

#include "base/addresses.hpp"
#include "base/file_descriptor.hpp"

namespace troupe {

/// Which ranks meet, and how long they wait for each other.
struct rank_group {
  std::string name;  ///< the same for all that belong together, and for nobody else
  int rank = 0, size = 1;
  std::string place;                           ///< endpoint of rank 0's meeting place
  std::chrono::milliseconds patience{10'000};  ///< of rank 0, each time that they meet; others wait a quarter longer
  std::stop_token stop;                        ///< gives up at once
};

class meeting_place {
 public:
  static constexpr std::size_t longest_word = 1 << 16;

  /// `name`: an address or name of this machine; the port is any free one. If only other machines know where the name
  /// leads, as this one calls itself by a loopback, it listens at every address. Throws input_error.
  explicit meeting_place(const std::string& name);

  const std::string& endpoint() const { return endpoint_; }  ///< name:port

  /// An address of this process, in numbers, by which the whole group reaches it. All ranks must ask for theirs. Throws
  /// as exchange_words does.
  std::string host_among(rank_group group) const;

  /// Everyone's words in the order of ranks, each at most `longest_word`. Throws collective_failure where somebody does
  /// not come. Rank 0 uses this place, the others go to `group.place`.
  std::vector<std::string> exchange_words(const rank_group& group, std::string own_word) const;

 private:
  bool listen(const socket_address& at);
  std::string called() const;  ///< for people: also where it listens, if its name does not say that
  bool is_everywhere() const { return host_ == "::" || host_ == "0.0.0.0"; }

  std::string host_;  ///< the address where it listens, in numbers
  std::string endpoint_;
  file_descriptor listener_;
};

}  // namespace troupe
