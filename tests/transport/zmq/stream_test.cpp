#include "transport/zmq/stream.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

frame of_size(std::size_t bytes) {
  frame made;
  made.body.resize(bytes);
  return made;
}

frame_header numbered(std::uint64_t sequence, std::uint64_t bytes = 1) {
  frame_header header;
  header.sequence = sequence;
  header.body_bytes = bytes;
  return header;
}

TEST(send_window, frames_are_numbered_from_1_and_given_once_a_connection) {
  send_window window(1 << 20);
  for (int i = 0; i < 3; ++i) window.push(of_size(1));
  for (std::uint64_t i = 1; i <= 3; ++i) {
    ASSERT_EQ(window.next()->header.sequence, i);
    window.sent();
  }
  EXPECT_EQ(window.next(), nullptr);
  ASSERT_TRUE(window.confirm(1));
  EXPECT_EQ(window.next(), nullptr);
  window.restart();
  EXPECT_EQ(window.next()->header.sequence, 2u);
  EXPECT_EQ(window.first_kept(), 2u);
}

TEST(send_window, a_confirmation_of_what_was_not_sent_or_is_taken_back_is_refused) {
  send_window window(1 << 20);
  window.push(of_size(1));
  window.push(of_size(1));
  EXPECT_FALSE(window.confirm(3));
  EXPECT_FALSE(window.confirm(~0ull));
  EXPECT_TRUE(window.confirm(2));
  EXPECT_TRUE(window.confirm(2));
  EXPECT_FALSE(window.confirm(1));
  EXPECT_TRUE(window.empty());
}

TEST(send_window, holds_so_many_bytes_until_they_are_confirmed) {
  send_window window(1000);
  EXPECT_TRUE(window.takes(of_size(500)));
  window.push(of_size(500));
  EXPECT_FALSE(window.takes(of_size(500)));
  ASSERT_TRUE(window.confirm(1));
  EXPECT_TRUE(window.takes(of_size(500)));
}

TEST(send_window, takes_one_frame_that_is_larger_than_all_it_holds) {
  send_window window(1000);
  EXPECT_TRUE(window.takes(of_size(5000)));
  window.push(of_size(5000));
  EXPECT_FALSE(window.takes(of_size(1)));
  ASSERT_TRUE(window.confirm(1));
  EXPECT_TRUE(window.takes(of_size(5000)));
}

TEST(receive_counter, numbers_go_up_by_one) {
  receive_counter counter;
  EXPECT_EQ(counter.accept(numbered(0)), frame_error::replayed);
  EXPECT_EQ(counter.accept(numbered(2)), frame_error::skipped);
  EXPECT_EQ(counter.accept(numbered(1)), std::nullopt);
  EXPECT_EQ(counter.accept(numbered(1)), frame_error::replayed);
  EXPECT_EQ(counter.accept(numbered(2)), std::nullopt);
  counter.begin_after(0);
  EXPECT_EQ(counter.accept(numbered(1)), std::nullopt);
}

TEST(receive_counter, confirms_after_many_frames_or_many_bytes) {
  receive_counter counter;
  for (std::uint64_t i = 1; i < 32; ++i) counter.accept(numbered(i));
  EXPECT_FALSE(counter.confirm_now());
  counter.accept(numbered(32));
  EXPECT_TRUE(counter.confirm_now());
  counter.confirmed();
  EXPECT_FALSE(counter.unconfirmed());
  counter.accept(numbered(33, 2 << 20));
  EXPECT_TRUE(counter.confirm_now());
}

}  // namespace
}  // namespace troupe::detail
