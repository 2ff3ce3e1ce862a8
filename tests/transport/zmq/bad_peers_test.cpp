// What comes from processes that are not ours, or lie.
#include <algorithm>
#include <array>
#include <future>
#include <random>
#include <semaphore>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.hpp>

#include "base/host_port.hpp"
#include "tests/base/loopback.hpp"
#include "tests/transport/zmq/peer.hpp"
#include "tests/transport/zmq/raw_dealer.hpp"
#include "transport/zmq/codec.hpp"
#include "transport/zmq/greeting.hpp"
#include "transport/zmq/mechanism.hpp"

namespace troupe {
namespace {

using detail::control_kind;

class bad_peers : public testing::Test {
 protected:
  void SetUp() override { expect_good_link_works(); }
  void TearDown() override { expect_good_link_works(); }
  void expect_good_link_works() {
    ++sent_;
    good_->send(link_, numbered_frame(sent_));
    EXPECT_TRUE(good_.wait_frames(sent_));
    EXPECT_TRUE(good_.told().empty());
  }

  peer listener_{peer::listening(), true};
  peer good_;
  link_id link_ = good_->connect(listener_->endpoint());
  std::uint64_t sent_ = 0;
};

/// Trying to send takes the signal of what has come meanwhile, also where nobody is left to send to.
TEST_F(bad_peers, who_is_gone_delays_nobody_else) {
  std::binary_semaphore linked(0), held(0), go_on(0), came(0);
  link_id gone_link = no_link;
  const auto on_frame = [&](link_id from, const frame& what) {
    if (what.correlation == 1) gone_link = from;
    (what.correlation == 1 ? linked : came).release();
  };
  const auto on_closed = [&](link_id of, const link_end&) {
    if (of != no_link) return;
    held.release();
    go_on.acquire();
  };
  bus listening(peer::listening(), {on_frame, on_closed});
  const std::string& where = listening.endpoint();
  const link_id to_it = good_->connect(where);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    auto gone = std::make_unique<raw_dealer>(where);
    gone->greet({{9, 9}, i});
    frame_header first = raw_dealer::header_of(3, 1);
    first.correlation = 1;
    gone->send(first);
    linked.acquire();
    EXPECT_EQ(gone->hear(), static_cast<std::uint16_t>(control_kind::confirmation));
    raw_dealer stranger(where);
    stranger.send(std::vector<std::vector<std::byte>>(2));
    held.acquire();  // now the bus' thread reads nothing
    good_->send(to_it, numbered_frame(2));
    gone.reset();
    EXPECT_EQ(detail::mechanism_at(where), "NULL") << "libzmq's thread has seen both by now";
    EXPECT_EQ(listening.send(gone_link, numbered_frame(3)), send_status::queued);
    go_on.release();
    ASSERT_TRUE(came.try_acquire_for(std::chrono::seconds(1))) << "round " << i;
  }
}

TEST_F(bad_peers, a_frame_that_comes_again_closes_its_link) {
  raw_dealer bad(listener_->endpoint());
  bad.greet();
  bad.send(raw_dealer::header_of(1, 1));
  bad.send(raw_dealer::header_of(1, 2));
  bad.send(raw_dealer::header_of(1, 2));
  EXPECT_TRUE(listener_.was_told("replayed"));
  EXPECT_TRUE(listener_.was_told("127.0.0.1"));
}

TEST_F(bad_peers, a_frame_too_early_closes_its_link) {
  raw_dealer bad(listener_->endpoint());
  bad.greet();
  bad.send(raw_dealer::header_of(1, 2));
  EXPECT_TRUE(listener_.was_told("missing"));
}

TEST_F(bad_peers, every_kind_of_bad_frame_closes_its_link_and_says_why) {
  const auto right = raw_dealer::header_of(1, 1);
  auto magic = right, version = right, oversized = right, length = right, attached = right;
  magic.magic = 1;
  version.version = frame_header::right_version + 1;
  oversized.body_bytes = ~0ull;
  length.body_bytes = 5;
  attached.attachment_bytes = 5;
  const auto of = [](const frame_header& header) { return raw_dealer::bytes_of(header); };
  const std::vector<std::byte> four(4);
  const std::vector<std::pair<std::vector<std::vector<std::byte>>, std::string>> cases = {
      {{of(magic), {}}, "not a frame of troupe"},
      {{of(version), {}}, "another version"},
      {{of(oversized), {}}, "longer than allowed"},
      {{of(length), four}, "another length"},
      {{of(attached), {}}, "not made of"},
      {{of(attached), {}, four}, "another length"},
      {{of(right)}, "not made of"},
      {{of(right), {}, {}}, "not made of"},
      {{of(right), {}, four, four}, "not made of"},
      {{of(right), {}, four, four, four, four, four}, "not made of"},
      {{{}, {}}, "shorter"},
      {{four, four}, "shorter"},
      {{of(raw_dealer::header_of(static_cast<std::uint16_t>(control_kind::confirmation), 0)), {}}, "control"},
      {{of(raw_dealer::header_of(0xffff, 0)), {}}, "control"},
      {{of(raw_dealer::header_of(static_cast<std::uint16_t>(control_kind::welcome), 0)), {}}, "control"}};
  std::uint64_t number = 0;
  for (const auto& [parts, why] : cases) {
    SCOPED_TRACE(number);
    raw_dealer bad(listener_->endpoint());
    bad.greet({{7, 7}, ++number});
    bad.send(parts);
    EXPECT_EQ(bad.hear(), static_cast<std::uint16_t>(control_kind::goodbye));
    ASSERT_TRUE(listener_.wait_closed(number));
    EXPECT_NE(listener_.told().back().second.find(why), std::string::npos) << listener_.told().back().second;
  }
}

TEST_F(bad_peers, a_process_of_another_version_hears_why_it_is_not_let_in) {
  raw_dealer bad(listener_->endpoint());
  frame_header header = raw_dealer::header_of(static_cast<std::uint16_t>(control_kind::greeting), 0);
  --header.version;
  bad.send(header, encode(detail::greeting{{8, 8}, 1}));
  EXPECT_EQ(bad.hear(), static_cast<std::uint16_t>(control_kind::goodbye)) << "whose header says our version";
  EXPECT_TRUE(listener_.was_told("another version"));
}

TEST_F(bad_peers, who_dials_a_process_of_another_version_hears_that_no_other_link_to_it_would_work) {
  zmq::context_t context;
  zmq::socket_t other(context, zmq::socket_type::router);
  other.set(zmq::sockopt::linger, 1000);
  other.bind("tcp://127.0.0.1:*");
  std::promise<link_end> ended;
  bus dialing({}, {{}, [&](link_id, const link_end& end) { ended.set_value(end); }});
  (void)dialing.connect(other.get(zmq::sockopt::last_endpoint));
  zmq::message_t routing;
  ASSERT_TRUE(other.recv(routing));
  frame_header header = raw_dealer::header_of(static_cast<std::uint16_t>(control_kind::goodbye), 0);
  ++header.version;
  const auto bytes = raw_dealer::bytes_of(header);
  other.send(routing, zmq::send_flags::sndmore);
  other.send(zmq::const_buffer(bytes.data(), bytes.size()), zmq::send_flags::sndmore);
  other.send(zmq::message_t(), zmq::send_flags::none);
  const link_end end = ended.get_future().get();
  EXPECT_TRUE(end.is_other_version);
  EXPECT_NE(end.why.find(std::to_string(header.version)), std::string::npos) << end.why;
}

TEST_F(bad_peers, a_confirmation_of_frames_never_sent_closes_its_link) {
  raw_dealer bad(listener_->endpoint());
  bad.greet();
  bad.send(raw_dealer::header_of(static_cast<std::uint16_t>(control_kind::confirmation), 0),
           encode(detail::confirmation{77}));
  EXPECT_TRUE(listener_.was_told("control"));
}

TEST_F(bad_peers, a_past_that_was_not_is_refused) {
  raw_dealer first(listener_->endpoint());
  first.greet({{3, 3}, 1});
  raw_dealer second(listener_->endpoint());
  second.send(raw_dealer::header_of(static_cast<std::uint16_t>(control_kind::greeting), 0),
              encode(detail::greeting{{3, 3}, 1, 2, {}, 0, 0, 50}));
  EXPECT_EQ(second.hear(), static_cast<std::uint16_t>(control_kind::goodbye));
  EXPECT_TRUE(listener_.was_told("another past"));
}

TEST_F(bad_peers, who_comes_back_on_a_new_connection_goes_on_where_it_was) {
  raw_dealer first(listener_->endpoint());
  first.greet({{4, 4}, 1});
  first.send(raw_dealer::header_of(1, 1));
  ASSERT_TRUE(listener_.wait_frames(2));
  raw_dealer second(listener_->endpoint());
  second.greet({{4, 4}, 1, 2});
  second.send(raw_dealer::header_of(1, 2));
  ASSERT_TRUE(listener_.wait_frames(3));
  EXPECT_EQ(listener_.frames()[1].first, listener_.frames()[2].first);
  // Both echoes: the first was never confirmed.
  EXPECT_EQ(second.hear(), 1);
  EXPECT_EQ(second.hear(), 1);
}

TEST_F(bad_peers, a_greeting_that_was_overtaken_by_its_successor_is_ignored) {
  raw_dealer first(listener_->endpoint()), second(listener_->endpoint());
  first.greet({{5, 5}, 1, 1});
  second.greet({{5, 5}, 1, 2});
  first.send(raw_dealer::header_of(static_cast<std::uint16_t>(control_kind::greeting), 0),
             encode(detail::greeting{{5, 5}, 1, 1}));
  expect_good_link_works();  // by then the listener has read what `first` sent
  second.send(raw_dealer::header_of(1, 1));
  EXPECT_EQ(second.hear(), 1);
}

TEST_F(bad_peers, random_multipart_messages_disturb_nothing) {
  raw_dealer stranger(listener_->endpoint()), greeted(listener_->endpoint());
  greeted.greet({{9, 9}, 9});
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::vector<std::byte>> parts(1 + random() % 5);
    for (auto& part : parts) {
      part.resize(random() % 3 == 0 ? frame_header::size : random() % 100);
      for (auto& byte : part) byte = static_cast<std::byte>(random());
    }
    if (random() % 2 == 0)
      parts[0] = raw_dealer::bytes_of(raw_dealer::header_of(static_cast<std::uint16_t>(random()), 0));
    stranger.send(parts);
    greeted.send(parts);
  }
  EXPECT_TRUE(listener_.wait_closed(2));
}

TEST_F(bad_peers, plain_bytes_on_the_port_disturb_nothing) {
  const int port = split_endpoint(listener_->endpoint()).value().port;
  std::mt19937 random(4);
  for (int i = 0; i < 50; ++i) {
    const file_descriptor socket = test::connected_to(port);
    ASSERT_TRUE(socket.is_open());
    std::array<unsigned char, 3000> bytes{};
    // Every third begins as ZeroMQ does.
    const std::array<unsigned char, 12> greeting{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0};
    for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
    if (i % 3 == 0) std::copy(greeting.begin(), greeting.end(), bytes.begin());
    [[maybe_unused]] const auto sent = ::send(socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
}

TEST(bad_listener, a_listener_that_lies_closes_the_link_to_it_alone) {
  zmq::context_t context;
  zmq::socket_t liar(context, zmq::socket_type::router);
  liar.set(zmq::sockopt::linger, 0);
  liar.set(zmq::sockopt::rcvtimeo, 10'000);
  liar.bind("tcp://127.0.0.1:*");
  peer listener(peer::listening(), true), dialer;
  const link_id bad = dialer->connect(liar.get(zmq::sockopt::last_endpoint)),
                good = dialer->connect(listener->endpoint());
  zmq::message_t who, part;
  ASSERT_TRUE(liar.recv(who));
  for (bool more = true; more; more = part.more()) ASSERT_TRUE(liar.recv(part));
  liar.send(who, zmq::send_flags::sndmore);
  liar.send(zmq::str_buffer("hello"), zmq::send_flags::none);
  ASSERT_TRUE(dialer.wait_closed());
  EXPECT_EQ(dialer.told()[0].first, bad);
  dialer->send(good, numbered_frame(1));
  EXPECT_TRUE(dialer.wait_frames(1));
}

TEST(silent_peer, a_process_that_went_without_a_word_is_forgotten) {
  auto options = peer::listening();
  options.forget_after = std::chrono::milliseconds(100);
  peer listener(options);
  {
    raw_dealer quiet(listener->endpoint());
    quiet.greet();
    quiet.send(raw_dealer::header_of(1, 1));
    ASSERT_TRUE(listener.wait_frames(1));
  }
  // Its end is noticed when something is sent to it.
  EXPECT_TRUE(listener.was_told("could not be reached"));
  EXPECT_EQ(listener->send(listener.frames()[0].first, {}), send_status::gone);
}

}  // namespace
}  // namespace troupe
