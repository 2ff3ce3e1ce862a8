#include "transport/zmq/frame.hpp"

#include <array>
#include <random>

#include <gtest/gtest.h>

namespace troupe {
namespace {

using header_bytes = std::array<std::byte, frame_header::size>;

frame_header some_header() {
  frame_header header;
  header.kind = 7;
  header.unused = 0x0102030405060708;
  header.sequence = 9;
  header.correlation = 1ull << 63;
  header.body_bytes = 100;
  header.attachment_bytes = 64 << 20;
  return header;
}

header_bytes written(const frame_header& header) {
  header_bytes bytes{};
  write_header(header, bytes);
  return bytes;
}

TEST(frame, a_header_comes_back_as_it_was) {
  const auto read = read_header(written(some_header()), {});
  ASSERT_TRUE(read);
  EXPECT_EQ(written(*read), written(some_header()));
  EXPECT_EQ(read->unused, 0x0102030405060708u);
  EXPECT_EQ(read->attachment_bytes, 64u << 20);
}

TEST(frame, the_wire_is_little_endian) {
  const auto bytes = written(some_header());
  EXPECT_EQ(bytes[0], std::byte{'T'});
  EXPECT_EQ(bytes[6], std::byte{7});
  EXPECT_EQ(bytes[8], std::byte{8});
  EXPECT_EQ(bytes[15], std::byte{1});
  EXPECT_EQ(bytes[31], std::byte{0x80});
}

TEST(frame, every_other_length_is_refused) {
  const auto bytes = written(some_header());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    EXPECT_EQ(read_header(std::span(bytes).first(length), {}).error(), frame_error::too_short);
  std::array<std::byte, frame_header::size + 1> longer{};
  std::copy(bytes.begin(), bytes.end(), longer.begin());
  EXPECT_EQ(read_header(longer, {}).error(), frame_error::wrong_length);
}

TEST(frame, another_magic_version_or_size_is_refused) {
  auto header = some_header();
  header.magic ^= 1;
  EXPECT_EQ(read_header(written(header), {}).error(), frame_error::wrong_magic);
  header = some_header();
  header.version += 1;
  EXPECT_EQ(read_header(written(header), {}).error(), frame_error::wrong_version);
  header = some_header();
  header.attachment_bytes += 1;
  EXPECT_EQ(read_header(written(header), {}).error(), frame_error::too_long);
  header = some_header();
  header.body_bytes = ~0ull;
  EXPECT_EQ(read_header(written(header), {}).error(), frame_error::too_long);
}

TEST(frame, of_another_version_is_described_by_both) {
  auto header = some_header();
  header.version = 77;
  const std::string text = describe(frame_error::wrong_version, written(header));
  EXPECT_NE(text.find("version 77"), std::string::npos) << text;
  EXPECT_NE(text.find("ours " + std::to_string(frame_header::right_version)), std::string::npos) << text;
  EXPECT_EQ(describe(frame_error::too_short, {}), name_of(frame_error::too_short));
}

TEST(frame, every_error_has_a_name) {
  for (int i = 0; i <= static_cast<int>(frame_error::wrong_control); ++i)
    EXPECT_NE(name_of(static_cast<frame_error>(i)), "unknown");
}

}  // namespace
}  // namespace troupe
