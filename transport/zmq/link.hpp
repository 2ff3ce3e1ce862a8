#pragma once
#include <cstdint>
#include <string>

#include "base/strong_id.hpp"

namespace troupe {

/// One other process as this process' bus knows it. Never used again within a process.
using link_id = strong_id<struct link_tag, std::uint64_t>;
constexpr link_id no_link{0};

/// Why a link is not usable any more.
struct link_end {
  std::string why;
  /// The other side speaks another version: the next link to it would end like that too.
  bool is_other_version = false;
  bool is_goodbye = false;  ///< the other side has closed it; it may take a new one
};

}  // namespace troupe
