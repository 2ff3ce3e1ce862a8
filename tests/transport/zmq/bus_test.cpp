#include "transport/zmq/bus.hpp"

#include <algorithm>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/soon.hpp"
#include "tests/base/temp_folder.hpp"
#include "tests/transport/zmq/peer.hpp"
#include "tests/transport/zmq/raw_dealer.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

bool same(const frame& a, const frame& b) {
  const auto x = a.attachment.bytes(), y = b.attachment.bytes();
  return a.kind == b.kind && a.correlation == b.correlation && a.body == b.body &&
         std::equal(x.begin(), x.end(), y.begin(), y.end());
}

void expect_numbers(const peer& where, std::uint64_t from, std::uint64_t to) {
  const auto frames = where.frames();
  ASSERT_EQ(frames.size(), to - from);
  for (std::uint64_t i = from; i < to; ++i)
    ASSERT_TRUE(same(frames[i - from].second, numbered_frame(i, i % 7 == 0 ? i * 11 + 1 : 0))) << i;
}

void send_numbers(bus& from, link_id to, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i)
    ASSERT_EQ(from.send(to, numbered_frame(i, i % 7 == 0 ? i * 11 + 1 : 0)), send_status::queued);
}

TEST(bus, thousands_of_frames_with_attachments_go_both_ways_in_order) {
  constexpr std::uint64_t count = 5000;
  peer listener(peer::listening(), true), dialer;
  const link_id link = dialer->connect(listener->endpoint());
  send_numbers(*dialer, link, 0, count);
  ASSERT_TRUE(listener.wait_frames(count));
  ASSERT_TRUE(dialer.wait_frames(count));
  expect_numbers(listener, 0, count);
  expect_numbers(dialer, 0, count);
  EXPECT_TRUE(dialer.told().empty());
  EXPECT_TRUE(listener.told().empty());
}

TEST(bus, many_links_and_threads_do_not_mix) {
  peer listener(peer::listening(), true), other(peer::listening(), true), dialer;
  std::vector<std::thread> threads;
  constexpr std::uint64_t count = 500;
  std::vector<link_id> links;
  for (int i = 0; i < 6; ++i) links.push_back(dialer->connect((i % 2 == 0 ? listener : other)->endpoint()));
  for (const link_id link : links) threads.emplace_back([&, link] { send_numbers(*dialer, link, 0, count); });
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(dialer.wait_frames(count * links.size()));
  std::map<link_id, std::uint64_t> seen;
  for (const auto& [from, what] : dialer.frames()) EXPECT_EQ(what.correlation, seen[from]++);
  EXPECT_EQ(seen.size(), links.size());
}

/// Why nobody else can listen there now. That may pass, so it is no bad input.
std::string passing_fault(const std::string& where) {
  try {
    const peer second(peer::listening(where));
  } catch (const input_error& error) {
    ADD_FAILURE() << error.what();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return {};
}

TEST(bus, an_ipc_path_serves_too) {
  const test::temp_folder folder;
  const std::filesystem::path path = folder.path() / "bus";
  const std::string where = "ipc://" + path.string();
  {
    peer listener(peer::listening(where), true), dialer;
    send_numbers(*dialer, dialer->connect(where), 0, 10);
    ASSERT_TRUE(dialer.wait_frames(10));
    EXPECT_THAT(passing_fault(where), HasSubstr("another process"));
    EXPECT_TRUE(std::filesystem::exists(path)) << "nor does the one that was refused take it away";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(bus, a_large_attachment_is_what_was_sent_and_its_owner_is_let_go) {
  peer listener(peer::listening()), dialer;
  const link_id link = dialer->connect(listener->endpoint());
  frame big = numbered_frame(9, 20 << 20);
  const std::weak_ptr<const void> owner = big.attachment.owner();
  ASSERT_EQ(dialer->send(link, std::move(big)), send_status::queued);
  ASSERT_TRUE(listener.wait_frames(1));
  EXPECT_TRUE(same(listener.frames()[0].second, numbered_frame(9, 20 << 20)));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(listener.frames()[0].second.attachment.bytes().data()) % 8, 0u);
  // The confirmation of a later frame comes after that of the first.
  peer last(peer::listening(), true);
  const link_id other = dialer->connect(last->endpoint());
  std::uint64_t sent = 0;
  while (!owner.expired() && sent < 100'000) {
    send_numbers(*dialer, other, sent, sent + 1);
    ASSERT_TRUE(dialer.wait_frames(++sent));
  }
  EXPECT_TRUE(owner.expired());
}

/// Each message of its own would wake threads on both sides, for every heartbeat of every node.
TEST(bus, a_confirmation_goes_along_with_what_is_sent_to_the_other_side_anyway) {
  std::promise<bus*> made;
  const auto answer_twice = [answerer = made.get_future().share()](link_id from, const frame& what) {
    answerer.get()->send(from, what);
    answerer.get()->send(from, what);
  };
  bus listener(peer::listening(), {answer_twice, {}});
  made.set_value(&listener);
  raw_dealer other(listener.endpoint());
  other.greet();
  other.send(raw_dealer::header_of(3, 1));
  EXPECT_EQ(other.hear(), 3);
  EXPECT_EQ(other.hear(), static_cast<std::uint16_t>(detail::control_kind::confirmation));
  EXPECT_EQ(other.hear(), 3);
}

TEST(bus, what_was_sent_before_anyone_listens_arrives) {
  const std::string where = nobodys_address();
  peer dialer;
  send_numbers(*dialer, dialer->connect(where), 0, 100);
  peer listener(peer::listening(where));
  ASSERT_TRUE(listener.wait_frames(100));
  expect_numbers(listener, 0, 100);
}

TEST(bus, a_listener_that_starts_anew_gets_what_waited_and_is_not_taken_for_a_replay) {
  auto listener = std::make_unique<peer>(peer::listening(), true);
  const std::string where = (*listener)->endpoint();
  peer dialer;
  const link_id link = dialer->connect(where);
  for (std::uint64_t from = 0; from < 400; from += 100) {
    send_numbers(*dialer, link, from, from + 50);
    ASSERT_TRUE(dialer.wait_frames(from + 50));
    listener.reset();
    send_numbers(*dialer, link, from + 50, from + 100);
    listener = std::make_unique<peer>(peer::listening(where), true);
  }
  ASSERT_TRUE(dialer.wait_frames(400));
  EXPECT_TRUE(dialer.told().empty());
  for (const auto& [from, what] : dialer.frames()) EXPECT_EQ(from, link);
}

TEST(bus, frames_sent_while_the_listener_is_away_go_to_the_next_one) {
  auto listener = std::make_unique<peer>(peer::listening(), true);
  const std::string where = (*listener)->endpoint();
  peer dialer;
  const link_id link = dialer->connect(where);
  send_numbers(*dialer, link, 0, 10);
  ASSERT_TRUE(dialer.wait_frames(10));
  listener.reset();
  send_numbers(*dialer, link, 10, 200);
  listener = std::make_unique<peer>(peer::listening(where), true);
  ASSERT_TRUE(dialer.wait_frames(200));
  const auto frames = dialer.frames();
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_EQ(frames[i].second.correlation, i);
}

TEST(bus, a_link_that_is_not_dialed_for_ever_ends_where_nobody_listens) {
  const std::string where = nobodys_address();
  bus::options options;
  options.forget_after = std::chrono::milliseconds(50);
  peer dialer(options);
  const link_id patient = dialer->connect(where), other = dialer->connect(where, {}, dialing::until_forgotten);
  send_numbers(*dialer, patient, 0, 1);
  ASSERT_TRUE(dialer.was_told("could not be reached"));
  EXPECT_EQ(dialer.told()[0].first, other);
  peer listener(peer::listening(where));
  EXPECT_TRUE(listener.wait_frames(1));
  EXPECT_EQ(dialer.told().size(), 1u);
}

TEST(bus, waits_until_a_link_is_up_and_not_for_one_that_is_gone) {
  const std::string where = nobodys_address();
  peer dialer;
  const link_id link = dialer->connect(where);
  EXPECT_FALSE(dialer->wait_up(link, std::chrono::milliseconds(20), {}));
  peer listener(peer::listening(where));
  EXPECT_TRUE(dialer->wait_up(link, std::chrono::seconds(20), {}));
  dialer->close(link);
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(dialer->wait_up(link, std::chrono::seconds(20), {}));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST(bus, dials_no_address_that_is_for_listening) {
  peer dialer;
  EXPECT_EQ(test::refusal([&] { dialer->connect("tcp://*:7700"); }),
            "tcp://*:7700: * is for listening at every address: name one of them, as tcp://127.0.0.1:7700");
}

TEST(bus, waits_no_longer_for_a_link_that_ends_meanwhile) {
  bus::options options;
  options.forget_after = std::chrono::milliseconds(50);
  peer dialer(options);
  const auto begun = std::chrono::steady_clock::now();
  const link_id link = dialer->connect("tcp://127.0.0.1:1", {}, dialing::until_forgotten);
  EXPECT_FALSE(dialer->wait_up(link, std::chrono::seconds(20), {}));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST(bus, whoever_dialed_and_ends_is_told_as_gone_and_its_link_is_gone) {
  peer listener(peer::listening());
  {
    peer dialer;
    send_numbers(*dialer, dialer->connect(listener->endpoint()), 0, 50);
  }
  ASSERT_TRUE(listener.wait_closed());
  expect_numbers(listener, 0, 50);
  EXPECT_EQ(listener->send(listener.frames()[0].first, {}), send_status::gone);
}

TEST(bus, closing_a_link_tells_the_other_side_alone) {
  peer listener(peer::listening()), dialer;
  const link_id link = dialer->connect(listener->endpoint()), second = dialer->connect(listener->endpoint());
  send_numbers(*dialer, link, 0, 1);
  ASSERT_TRUE(listener.wait_frames(1));
  listener->close(listener.frames()[0].first);
  ASSERT_TRUE(dialer.wait_closed());
  EXPECT_EQ(dialer.told()[0].first, link);
  EXPECT_EQ(dialer->send(link, {}), send_status::gone);
  send_numbers(*dialer, second, 1, 2);
  EXPECT_TRUE(listener.wait_frames(2));
  EXPECT_TRUE(listener.told().empty());
}

TEST(bus, a_link_takes_so_many_bytes_and_then_says_full) {
  bus::options options;
  options.queue_bytes = 1 << 20;
  peer dialer(options);
  const std::string where = nobodys_address();
  const link_id link = dialer->connect(where);
  std::uint64_t sent = 0;
  while (dialer->send(link, numbered_frame(sent, 100'000)) == send_status::queued) ++sent;
  EXPECT_EQ(sent, 10u);
  EXPECT_EQ(dialer->send(link, numbered_frame(0, 100'000)), send_status::full);
  EXPECT_EQ(dialer->send(link, numbered_frame(sent)), send_status::queued);
  peer listener(peer::listening(where), true);
  ASSERT_TRUE(dialer.wait_frames(sent + 1));
  // There is room again once these are confirmed.
  EXPECT_TRUE(
      test::is_soon([&] { return dialer->send(link, numbered_frame(sent + 1, 100'000)) == send_status::queued; }));
  EXPECT_TRUE(dialer.wait_frames(sent + 2));
}

TEST(bus, frames_larger_than_the_queue_go_one_after_the_other) {
  bus::options options;
  options.queue_bytes = 1 << 20;
  peer listener(peer::listening()), dialer(options);
  const link_id link = dialer->connect(listener->endpoint());
  ASSERT_EQ(dialer->send(link, numbered_frame(0, 4 << 20)), send_status::queued);
  ASSERT_TRUE(listener.wait_frames(1));
  ASSERT_TRUE(test::is_soon([&] { return dialer->send(link, numbered_frame(1, 4 << 20)) == send_status::queued; }));
  ASSERT_TRUE(listener.wait_frames(2));
  EXPECT_TRUE(same(listener.frames()[1].second, numbered_frame(1, 4 << 20)));
}

TEST(bus, a_reader_that_does_not_read_makes_its_link_full_and_no_other) {
  std::mutex gate;
  std::unique_lock held(gate);
  bus slow(peer::listening(), {[&](link_id, const frame&) { const std::lock_guard wait(gate); }, {}});
  peer quick(peer::listening(), true);
  bus::options options;
  options.queue_bytes = 8 << 20;
  peer dialer(options);
  const link_id to_slow = dialer->connect(slow.endpoint()), to_quick = dialer->connect(quick->endpoint());
  while (dialer->send(to_slow, numbered_frame(1, 1 << 20)) == send_status::queued) {
  }
  send_numbers(*dialer, to_quick, 0, 100);
  EXPECT_TRUE(dialer.wait_frames(100));
  held.unlock();
}

TEST(bus, a_frame_beyond_the_limits_is_a_mistake_of_ours) {
  bus::options options;
  options.limits = {1000, 1000};
  peer dialer(options);
  EXPECT_THROW(dialer->send(no_link, numbered_frame(0, 1001)), std::length_error);
}

TEST(bus, too_many_links_are_refused_and_the_others_go_on) {
  auto options = peer::listening();
  options.max_links = 2;
  peer listener(options, true), dialer;
  const link_id a = dialer->connect(listener->endpoint()), b = dialer->connect(listener->endpoint());
  send_numbers(*dialer, a, 0, 1);
  send_numbers(*dialer, b, 0, 1);
  ASSERT_TRUE(dialer.wait_frames(2));
  const link_id c = dialer->connect(listener->endpoint());
  ASSERT_TRUE(dialer.wait_closed());
  EXPECT_EQ(dialer.told()[0].first, c);
  EXPECT_TRUE(listener.was_told("too many"));
  dialer->close(a);
  ASSERT_TRUE(listener.wait_closed(2));
  send_numbers(*dialer, dialer->connect(listener->endpoint()), 0, 1);
  EXPECT_TRUE(dialer.wait_frames(3));
}

TEST(bus, an_address_that_is_taken_is_named_and_no_bad_input) {
  peer listener(peer::listening());
  EXPECT_THAT(passing_fault(listener->endpoint()), HasSubstr(listener->endpoint() + ": the address is taken"));
}

TEST(bus, an_address_of_another_machine_and_a_name_are_refused_by_what_to_name_instead) {
  for (const char* where : {"tcp://192.0.2.1:0", "tcp://a-name.invalid:7700"}) {
    auto options = peer::listening(where);
    options.insecure = true;
    EXPECT_THAT([&] { peer elsewhere(options); },
                ThrowsMessage<input_error>(HasSubstr(std::string(where) + ": that is no address of this machine")));
  }
}

TEST(bus, beyond_loopback_keys_are_asked_for) {
  for (const char* where : {"tcp://0.0.0.0:0", "tcp://*:0", "tcp://[::]:0"})
    EXPECT_THAT([&] { peer open(peer::listening(where)); },
                ThrowsMessage<input_error>(testing::AllOf(HasSubstr("troupe keygen"), HasSubstr("insecure = true"))));
  auto options = peer::listening("tcp://0.0.0.0:0");
  options.insecure = true;
  EXPECT_NO_THROW(peer open(options));
}

TEST(bus, what_is_no_address_is_refused) {
  peer dialer;
  for (const char* where : {"", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:x", "tcp://127.0.0.1:70000", "udp://a:1",
                            "127.0.0.1:5", "tcp://:5", "ipc://", "tcp://a b:5", "tcp://::1:5"}) {
    EXPECT_THROW(dialer->connect(where), input_error) << where;
    if (*where != '\0') {
      EXPECT_THROW(peer listener(peer::listening(where)), input_error) << where;
    }
  }
}

}  // namespace
}  // namespace troupe
