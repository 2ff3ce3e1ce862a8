#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <future>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/host_port.hpp"
#include "tests/base/loopback.hpp"
#include "tests/base/open_files.hpp"
#include "transport/collective/collective.hpp"
#include "transport/collective/meeting.hpp"

// The tests' own name server: later.test has an address from the second question on; two.test has two addresses, of
// which the first is a loopback; own.test is one loopback for the machine that is called so and another for the others.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  static const auto of_the_machine = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  static std::atomic<bool> was_asked{false};
  const std::string_view name = host != nullptr ? host : "";
  if (name == "later.test") return was_asked.exchange(true) ? getaddrinfo("127.0.0.1", port, hints, found) : EAI_AGAIN;
  if (name == "own.test")
    return of_the_machine((hints->ai_flags & AI_PASSIVE) != 0 ? "127.0.0.7" : "127.0.0.1", port, hints, found);
  if (name != "two.test") return of_the_machine(host, port, hints, found);
  const int fault = of_the_machine("127.0.0.7", port, hints, found);
  return fault != 0 ? fault : of_the_machine("0.0.0.0", port, hints, &(*found)->ai_next);
}

namespace troupe {
namespace {

using words = std::vector<std::string>;
using std::chrono::milliseconds;

rank_group group_at(const meeting_place& place, std::string name, int rank, int size,
                    milliseconds patience = std::chrono::seconds(20)) {
  return {
      .name = std::move(name), .rank = rank, .size = size, .place = place.endpoint(), .patience = patience, .stop = {}};
}

auto come(const rank_group& group, const std::string& word) {
  return std::async(std::launch::async, [group, word] {
    meeting_place own("127.0.0.1");
    return own.exchange_words(group, word);
  });
}

int port_of(const meeting_place& place) {
  return split_host_port(place.endpoint()).value().port;
}

TEST(meeting_place, everyone_hears_everyone_in_the_order_of_ranks) {
  meeting_place place("127.0.0.1");
  auto two = come(group_at(place, "g", 2, 3), std::string(5000, 'c')), one = come(group_at(place, "g", 1, 3), "");
  const words expected{"zero", "", std::string(5000, 'c')};
  EXPECT_EQ(place.exchange_words(group_at(place, "g", 0, 3), "zero"), expected);
  EXPECT_EQ(one.get(), expected);
  EXPECT_EQ(two.get(), expected);
}

TEST(meeting_place, who_comes_for_a_later_group_waits_for_it) {
  meeting_place place("127.0.0.1");
  auto late = come(group_at(place, "second", 1, 2), "b2"), early = come(group_at(place, "first", 1, 2), "b1");
  EXPECT_EQ(place.exchange_words(group_at(place, "first", 0, 2), "a"), (words{"a", "b1"}));
  EXPECT_EQ(place.exchange_words(group_at(place, "second", 0, 2), "a"), (words{"a", "b2"}));
  EXPECT_EQ(early.get(), (words{"a", "b1"}));
  EXPECT_EQ(late.get(), (words{"a", "b2"}));
}

TEST(meeting_place, a_rank_that_never_comes_is_named) {
  meeting_place place("127.0.0.1");
  auto one = come(group_at(place, "g", 1, 3, milliseconds(1000)), "one");
  try {
    place.exchange_words(group_at(place, "g", 0, 3, milliseconds(1000)), "zero");
    ADD_FAILURE() << "nobody came";
  } catch (const collective_failure& failure) {
    EXPECT_TRUE(std::string(failure.what()).starts_with("rank 2 of 3")) << failure.what();
    EXPECT_EQ(failure.peer(), 2);
  }
  EXPECT_THROW(one.get(), collective_failure);
}

/// Which says who is missing.
TEST(meeting_place, ranks_wait_longer_than_rank_0_does) {
  const meeting_place place("127.0.0.1");
  const auto begin = std::chrono::steady_clock::now();
  try {
    place.exchange_words(group_at(place, "g", 1, 3, milliseconds(80)), "one");
    ADD_FAILURE() << "nobody is there";
  } catch (const collective_failure& failure) {
    EXPECT_EQ(failure.peer(), 0);
  }
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(100));
}

TEST(meeting_place, gives_up_in_time_where_no_file_is_left_for_who_comes) {
  meeting_place place("127.0.0.1");
  const file_descriptor knocking = test::connected_to(port_of(place));
  ASSERT_TRUE(knocking.is_open());
  const test::few_open_files few(static_cast<rlim_t>(knocking.number()));
  EXPECT_THROW(place.exchange_words(group_at(place, "g", 0, 2, milliseconds(50)), "zero"), collective_failure);
}

TEST(meeting_place, a_stop_ends_the_waiting_on_both_sides) {
  meeting_place place("127.0.0.1");
  std::stop_source source;
  for (const int rank : {0, 1}) {
    rank_group group = group_at(place, "g", rank, 3, std::chrono::minutes(5));
    group.stop = source.get_token();
    auto waiting = come(group, "x");
    if (rank == 0) group.place = "127.0.0.1:1";
    source.request_stop();
    EXPECT_THROW(waiting.get(), collective_failure);
    source = {};
  }
}

/// Where rank 1 knows rank 0's place by this name.
void expect_that_ranks_meet_at(const std::string& host) {
  meeting_place place("127.0.0.1");
  rank_group group = group_at(place, "g", 1, 2);
  group.place = host + ":" + std::to_string(port_of(place));
  auto one = come(group, "b");
  EXPECT_EQ(place.exchange_words(group_at(place, "g", 0, 2), "a"), (words{"a", "b"}));
  EXPECT_EQ(one.get(), (words{"a", "b"}));
}

TEST(meeting_place, a_host_that_cannot_be_looked_up_now_is_asked_for_again) {
  expect_that_ranks_meet_at("later.test");
}

TEST(meeting_place, ranks_that_find_no_host_lose_each_other) {
  meeting_place place("127.0.0.1");
  for (const char* nowhere : {"no host is called this:1", "no place"}) {
    rank_group group = group_at(place, "g", 1, 2, milliseconds(50));
    group.place = nowhere;
    EXPECT_THROW(place.exchange_words(group, ""), collective_failure) << nowhere;
  }
}

TEST(meeting_place, every_address_of_a_host_is_tried) {
  expect_that_ranks_meet_at("two.test");
}

TEST(meeting_place, is_where_other_machines_come_if_the_host_has_such_an_address) {
  const meeting_place place("two.test");
  EXPECT_TRUE(test::connected_to(port_of(place)).is_open()) << "it is at the first address alone";
  EXPECT_TRUE(place.endpoint().starts_with("two.test:")) << place.endpoint();
}

TEST(meeting_place, is_everywhere_if_its_machine_alone_takes_its_name_for_a_loopback) {
  const meeting_place place("own.test");
  EXPECT_TRUE(place.endpoint().starts_with("own.test:")) << place.endpoint();
  auto one = come(group_at(place, "g", 1, 2), "b");
  EXPECT_EQ(place.exchange_words(group_at(place, "g", 0, 2), "a"), (words{"a", "b"}));
  EXPECT_EQ(one.get(), (words{"a", "b"}));
}

TEST(meeting_place, says_where_it_listens_if_its_name_does_not) {
  for (const auto& [name, here] :
       {std::pair("localhost", " (here 127.0.0.1)"), std::pair("own.test", " (here every address)")}) {
    const meeting_place place(name);
    try {
      place.exchange_words(group_at(place, "g", 0, 2, milliseconds(0)), "");
      ADD_FAILURE() << "nobody came";
    } catch (const collective_failure& failure) {
      EXPECT_EQ(failure.what(), "rank 1 of 2 did not come to " + place.endpoint() + here);
    }
  }
}

/// An address of this machine by which others reach it; empty if it has none.
std::string address_for_others() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return {};
  std::string host;
  for (const ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    socket_address address;
    address.length = sizeof(sockaddr_in);
    std::memcpy(&address.bytes, each->ifa_addr, address.length);
    if (!address.is_loopback()) host = address.in_numbers().host;
  }
  ::freeifaddrs(list);
  return host;
}

auto ask_host(const rank_group& group, const std::string& name) {
  return std::async(std::launch::async, [group, name] { return meeting_place(name).host_among(group); });
}

TEST(meeting_place, that_is_everywhere_has_the_address_at_which_others_found_it) {
  const std::string host = address_for_others();
  if (host.empty()) GTEST_SKIP() << "this machine has loopbacks alone";
  const meeting_place place("own.test");
  rank_group far = group_at(place, "g", 1, 4);
  far.place = host + ":" + std::to_string(port_of(place));
  auto one = ask_host(far, "own.test");
  auto two = ask_host(group_at(place, "g", 2, 4), "own.test"),
       three = ask_host(group_at(place, "g", 3, 4), "127.0.0.9");
  EXPECT_EQ(place.host_among(group_at(place, "g", 0, 4)), host);
  EXPECT_EQ(one.get(), host);
  EXPECT_EQ(two.get(), host) << "it came by a loopback, as rank 0 is on its machine";
  EXPECT_EQ(three.get(), "127.0.0.9") << "it is nowhere else";
}

TEST(meeting_place, ranks_of_one_machine_may_know_it_by_loopbacks_alone) {
  const meeting_place place("own.test");
  auto one = ask_host(group_at(place, "g", 1, 2), "own.test");
  EXPECT_EQ(place.host_among(group_at(place, "g", 0, 2)), "127.0.0.1");
  EXPECT_EQ(one.get(), "127.0.0.1");
}

TEST(meeting_place, nonsense_is_refused) {
  EXPECT_THROW(meeting_place("no host is called this"), input_error);
  meeting_place place("127.0.0.1");
  EXPECT_THROW(place.exchange_words(group_at(place, "g", 3, 2), ""), input_error);
  EXPECT_THROW(place.exchange_words(group_at(place, "g", 0, 1), std::string(1 << 20, 'x')), input_error);
}

}  // namespace
}  // namespace troupe
