#include "transport/zmq/frame.hpp"

#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace troupe {

static_assert(std::endian::native == std::endian::little, "the wire's byte order is this machine's");

std::string_view name_of(frame_error error) {
  switch (error) {
    case frame_error::too_short:
      return "shorter than a header";
    case frame_error::wrong_magic:
      return "not a frame of troupe";
    case frame_error::wrong_version:
      return "a frame of another version of troupe";
    case frame_error::too_long:
      return "a frame longer than allowed";
    case frame_error::wrong_length:
      return "a frame of another length than its header says";
    case frame_error::replayed:
      return "a frame that came before (replayed)";
    case frame_error::skipped:
      return "frames before it are missing";
    case frame_error::wrong_parts:
      return "not made of a header, a body and perhaps an attachment";
    case frame_error::wrong_control:
      return "a control frame that makes no sense here";
  }
  return "unknown";
}

namespace {

// Every field has its offset here, so that no compiler's padding reaches the wire.
template <class Header, class Visit>
void each_field(Header& header, Visit visit) {
  visit(0, header.magic);
  visit(4, header.version);
  visit(6, header.kind);
  visit(8, header.unused);
  visit(16, header.sequence);
  visit(24, header.correlation);
  visit(32, header.body_bytes);
  visit(40, header.attachment_bytes);
}

frame_header fields_of(std::span<const std::byte> bytes) {
  frame_header header;
  each_field(header, [&](std::size_t at, auto& field) { std::memcpy(&field, bytes.data() + at, sizeof field); });
  return header;
}

}  // namespace

std::string describe(frame_error error, std::span<const std::byte> header) {
  if (error != frame_error::wrong_version) return std::string(name_of(error));
  return fmt::format("{}, whose links speak version {} and ours {}: run the same program everywhere", name_of(error),
                     fields_of(header).version, frame_header::right_version);
}

void write_header(const frame_header& header, std::span<std::byte, frame_header::size> to) {
  each_field(header, [&](std::size_t at, const auto& field) { std::memcpy(to.data() + at, &field, sizeof field); });
}

result<frame_header, frame_error> read_header(std::span<const std::byte> bytes, const frame_limits& limits) {
  if (bytes.size() < frame_header::size) return frame_error::too_short;
  const frame_header header = fields_of(bytes);
  if (header.magic != frame_header::right_magic) return frame_error::wrong_magic;
  if (header.version != frame_header::right_version) return frame_error::wrong_version;
  if (bytes.size() != frame_header::size) return frame_error::wrong_length;
  if (header.body_bytes > limits.body_bytes || header.attachment_bytes > limits.attachment_bytes)
    return frame_error::too_long;
  return header;
}

}  // namespace troupe
