// What travels between processes: a fixed header, a body (a message's fields), and at times an attachment (activations,
// pieces of files) that is neither copied nor parsed on the way.
//
// Goals: everything is checked before anything is believed: magic, version, both lengths against what arrived and
// against a limit, and that the sender's count goes up (a frame that is played again is refused). Kinds are for whoever
// gets the frame.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/shared_bytes.hpp"

namespace troupe {

/// Kinds from here on are the bus' own.
constexpr std::uint16_t first_reserved_kind = 0xff00;

struct frame {
  std::uint16_t kind = 0;         ///< below first_reserved_kind
  std::uint64_t correlation = 0;  ///< which request this answers or asks; 0: none
  std::vector<std::byte> body;
  shared_bytes attachment;
};

/// The header on the wire, little-endian, 48 bytes.
struct frame_header {
  static constexpr std::uint32_t right_magic = 0x31505254;  // "TRP1"
  static constexpr std::uint16_t right_version = 13;        ///< another one for every change of what a message has
  static constexpr std::size_t size = 48;

  std::uint32_t magic = right_magic;
  std::uint16_t version = right_version;
  std::uint16_t kind = 0;
  std::uint64_t unused = 0;    ///< room: sent as 0 and not looked at
  std::uint64_t sequence = 0;  ///< counts the sender's frames on this link from 1; 0: the bus' own
  std::uint64_t correlation = 0;
  std::uint64_t body_bytes = 0;
  std::uint64_t attachment_bytes = 0;
};

struct frame_limits {
  std::uint64_t body_bytes = 16 << 20;
  std::uint64_t attachment_bytes = 64 << 20;
};

enum class frame_error : std::uint8_t {
  too_short,
  wrong_magic,
  wrong_version,
  too_long,      ///< beyond the limits
  wrong_length,  ///< not what the header says
  replayed,
  skipped,        ///< frames before it never came
  wrong_parts,    ///< not header, body and perhaps attachment
  wrong_control,  ///< of a reserved kind, and not what the other side may say now
};
std::string_view name_of(frame_error error);
/// The same, with both versions if they differ. `header`: what came.
std::string describe(frame_error error, std::span<const std::byte> header);

void write_header(const frame_header& header, std::span<std::byte, frame_header::size> to);
/// Everything but `replayed`, which needs the link's history.
result<frame_header, frame_error> read_header(std::span<const std::byte> bytes, const frame_limits& limits);

}  // namespace troupe
