#include <gtest/gtest.h>

#include "tests/base/soon.hpp"
#include "tests/transport/zmq/cutting_proxy.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe {
namespace {

void expect_each_once_in_order(const peer& where, std::uint64_t count) {
  const auto frames = where.frames();
  ASSERT_EQ(frames.size(), count);
  for (std::uint64_t i = 0; i < count; ++i) {
    ASSERT_EQ(frames[i].second.correlation, i);
    ASSERT_EQ(frames[i].second.body, numbered_frame(i).body);
    ASSERT_EQ(frames[i].first, frames[0].first);
  }
}

TEST(cut_connections, each_frame_arrives_once_and_in_order_both_ways) {
  peer listener(peer::listening(), true);
  cutting_proxy proxy(listener->endpoint());
  peer dialer;
  ASSERT_TRUE(proxy.ready());
  proxy.cut_after(200'000);
  const link_id link = dialer->connect(proxy.endpoint());
  constexpr std::uint64_t count = 1000;
  for (std::uint64_t i = 0; i < count; ++i) dialer->send(link, numbered_frame(i, 500));
  ASSERT_TRUE(dialer.wait_frames(count));
  ASSERT_TRUE(listener.wait_frames(count));
  expect_each_once_in_order(listener, count);
  expect_each_once_in_order(dialer, count);
  EXPECT_GE(proxy.cuts(), 3);
  EXPECT_TRUE(dialer.told().empty());
  EXPECT_TRUE(listener.told().empty());
}

TEST(cut_connections, a_listener_behind_a_cut_sends_on_when_the_other_side_is_back) {
  peer listener(peer::listening());
  cutting_proxy proxy(listener->endpoint());
  peer dialer;
  ASSERT_TRUE(proxy.ready());
  const link_id link = dialer->connect(proxy.endpoint());
  dialer->send(link, numbered_frame(0));
  ASSERT_TRUE(listener.wait_frames(1));
  const link_id back = listener.frames()[0].first;
  proxy.cut_after(0);
  dialer->send(link, numbered_frame(1));
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(listener->send(back, numbered_frame(i)), send_status::queued);
  proxy.cut_after(1'000'000);
  ASSERT_TRUE(dialer.wait_frames(100));
  ASSERT_TRUE(listener.wait_frames(2));
  expect_each_once_in_order(dialer, 100);
}

TEST(cut_connections, a_link_whose_dialer_stays_away_is_forgotten_and_its_dialer_hears_so_later) {
  auto options = peer::listening();
  options.forget_after = std::chrono::milliseconds(50);
  peer listener(options);
  cutting_proxy proxy(listener->endpoint());
  peer dialer;
  ASSERT_TRUE(proxy.ready());
  const link_id link = dialer->connect(proxy.endpoint());
  dialer->send(link, numbered_frame(0));
  ASSERT_TRUE(listener.wait_frames(1));
  proxy.cut_after(0);
  dialer->send(link, numbered_frame(1));
  ASSERT_TRUE(listener.was_told("could not be reached"));
  proxy.cut_after(1'000'000);
  ASSERT_TRUE(dialer.wait_closed());
  EXPECT_EQ(dialer.told()[0].first, link);
}

TEST(cut_connections, are_known_as_ended_at_once_and_stand_as_long_as_nobody_ends_them) {
  peer listener(peer::listening());
  cutting_proxy proxy(listener->endpoint());
  peer dialer;
  ASSERT_TRUE(proxy.ready());
  const link_id link = dialer->connect(proxy.endpoint());
  dialer->send(link, numbered_frame(0));
  ASSERT_TRUE(listener.wait_frames(1));
  const link_id theirs = listener.frames()[0].first;
  EXPECT_TRUE(listener->is_connected(theirs));
  EXPECT_FALSE(listener->is_connected(link_id(99)));
  proxy.cut_after(0);
  dialer->send(link, numbered_frame(1));
  EXPECT_TRUE(test::is_soon([&] { return !listener->is_connected(theirs); }));
  EXPECT_TRUE(test::is_soon([&] { return !dialer->is_connected(link); }));
}

TEST(cut_connections, a_link_that_is_not_dialed_for_ever_ends_when_the_other_side_stays_away) {
  peer listener(peer::listening());
  cutting_proxy proxy(listener->endpoint());
  bus::options options;
  options.forget_after = std::chrono::seconds(2);  // it must come up within this time, too
  peer dialer(options);
  ASSERT_TRUE(proxy.ready());
  const link_id link = dialer->connect(proxy.endpoint(), {}, dialing::until_forgotten);
  dialer->send(link, numbered_frame(0));
  ASSERT_TRUE(listener.wait_frames(1));
  proxy.cut_after(0);
  dialer->send(link, numbered_frame(1));
  ASSERT_TRUE(dialer.was_told("could not be reached"));
  EXPECT_EQ(dialer.told()[0].first, link);
}

/// Connections come up and pass small frames, but none gets a large one to the other side.
constexpr std::size_t small_packets_only = 20'000;
constexpr std::size_t large = 1'000'000;

TEST(cut_connections, a_link_through_which_no_large_frame_gets_ends_and_says_so) {
  peer listener(peer::listening());
  cutting_proxy proxy(listener->endpoint());
  bus::options options;
  options.forget_after = std::chrono::seconds(2);
  peer dialer(options);
  ASSERT_TRUE(proxy.ready());
  proxy.cut_after(small_packets_only);
  const link_id link = dialer->connect(proxy.endpoint(), {}, dialing::until_forgotten);
  dialer->send(link, numbered_frame(0));
  ASSERT_TRUE(listener.wait_frames(1));
  dialer->send(link, numbered_frame(1, large));
  ASSERT_TRUE(dialer.was_told("nothing that was sent got there"));
  EXPECT_EQ(dialer.told()[0].first, link);
  EXPECT_TRUE(listener.wait_closed());
}

TEST(cut_connections, a_listener_ends_a_link_through_which_no_large_frame_gets) {
  auto options = peer::listening();
  options.forget_after = std::chrono::seconds(2);
  peer listener(options);
  cutting_proxy proxy(listener->endpoint());
  peer dialer;
  ASSERT_TRUE(proxy.ready());
  proxy.cut_after(small_packets_only);
  dialer->send(dialer->connect(proxy.endpoint()), numbered_frame(0));
  ASSERT_TRUE(listener.wait_frames(1));
  listener->send(listener.frames()[0].first, numbered_frame(1, large));
  ASSERT_TRUE(listener.was_told("nothing that was sent got there"));
  EXPECT_TRUE(dialer.wait_closed());
}

}  // namespace
}  // namespace troupe
