#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/host_port.hpp"
#include "tests/base/soon.hpp"
#include "tests/transport/zmq/peer.hpp"

// Is held where slow.test has no answer yet.
static std::mutex slow_answer;
// Those who ask for it now, the most of them so far, and the threads that have asked for it and have not ended.
static std::atomic<int> slow_questions = 0, most_slow_questions = 0, slow_askers = 0;

/// Is counted while it lives.
struct counted {
  explicit counted(std::atomic<int>& living) : count(living) { ++count; }
  ~counted() { --count; }
  std::atomic<int>& count;
};

// The tests' own name server, which is asked as the machine's is: six.test has an address of IPv6 alone, both.test has
// one of each kind, two.test has two of IPv4, of which nobody listens at the first.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  static const auto of_the_machine = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = host != nullptr ? host : "";
  if (name == "slow.test") {
    static const thread_local counted asker(slow_askers);
    const counted question(slow_questions);
    const std::lock_guard until_answered(slow_answer);
    most_slow_questions = std::max<int>(most_slow_questions, slow_questions);
    return of_the_machine("127.0.0.1", port, hints, found);
  }
  if (name == "six.test") return of_the_machine("::1", port, hints, found);
  if (name != "both.test" && name != "two.test") return of_the_machine(host, port, hints, found);
  const int fault = of_the_machine(name == "two.test" ? "127.0.0.7" : "::1", port, hints, found);
  return fault != 0 ? fault : of_the_machine("127.0.0.1", port, hints, &(*found)->ai_next);
}

namespace troupe {
namespace {

/// As it stands behind a host: ":7700".
std::string port_of(peer& listener) {
  return ":" + std::to_string(split_endpoint(listener->endpoint()).value().port);
}

void expect_answers(const std::string& endpoint) {
  peer dialer;
  dialer->send(dialer->connect(endpoint), numbered_frame(7));
  EXPECT_TRUE(dialer.wait_frames(1)) << endpoint;
}

/// Skips where the machine has no IPv6.
class ipv6 : public testing::Test {
 protected:
  void SetUp() override {
    try {
      at_six_.emplace(peer::listening("tcp://[::1]:0"), true);
    } catch (const input_error&) {
      GTEST_SKIP() << "this machine has no IPv6";
    }
  }
  std::optional<peer> at_six_;
};

TEST_F(ipv6, an_address_is_listened_and_connected_to) {
  expect_answers("tcp://[::1]" + port_of(*at_six_));
}

TEST_F(ipv6, a_name_that_has_no_other_address_connects) {
  expect_answers("tcp://six.test" + port_of(*at_six_));
}

TEST_F(ipv6, a_name_that_has_both_connects_wherever_somebody_listens) {
  peer at_four(peer::listening("tcp://127.0.0.1:0"), true);
  expect_answers("tcp://both.test" + port_of(*at_six_));
  expect_answers("tcp://both.test" + port_of(at_four));
}

TEST(names, every_address_of_a_name_is_tried) {
  peer listener(peer::listening(), true);
  expect_answers("tcp://two.test" + port_of(listener));
}

TEST(names, one_that_has_no_answer_yet_hinders_no_other_link) {
  peer listener(peer::listening(), true), dialer;
  std::unique_lock no_answer(slow_answer);
  const link_id late = dialer->connect("tcp://slow.test" + port_of(listener));
  dialer->send(late, numbered_frame(1));
  const link_id other = dialer->connect("tcp://two.test" + port_of(listener));
  dialer->send(other, numbered_frame(2));
  ASSERT_TRUE(dialer.wait_frames(1));
  EXPECT_EQ(dialer.frames()[0].first, other);
  no_answer.unlock();
  ASSERT_TRUE(dialer.wait_frames(2));
  EXPECT_EQ(dialer.frames()[1].first, late);
}

TEST(names, of_many_links_are_asked_for_a_few_at_a_time) {
  constexpr std::size_t links = 20;
  peer listener(peer::listening(), true), dialer;
  std::unique_lock no_answer(slow_answer);
  for (std::size_t i = 0; i < links; ++i)
    dialer->send(dialer->connect("tcp://slow.test" + port_of(listener)), numbered_frame(i));
  EXPECT_TRUE(test::is_soon([] { return slow_questions == 8; }));
  no_answer.unlock();
  EXPECT_TRUE(dialer.wait_frames(links));
  EXPECT_EQ(most_slow_questions, 8);
}

TEST(names, one_that_has_no_answer_yet_does_not_keep_a_bus_from_its_end) {
  auto dialer = std::make_unique<peer>();
  std::unique_lock no_answer(slow_answer);
  (*dialer)->connect("tcp://slow.test:7700");
  EXPECT_TRUE(test::is_soon([] { return slow_askers > 0; }));
  const auto ended = std::async(std::launch::async, [&] { dialer.reset(); });
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  no_answer.unlock();  // which comes when the bus is gone
  EXPECT_TRUE(test::is_soon([] { return slow_askers == 0; }));
}

TEST(names, one_that_is_not_known_is_a_place_where_nobody_is_reached) {
  bus::options options;
  options.forget_after = std::chrono::milliseconds(50);
  peer dialer(options);
  dialer->connect("tcp://no.such.host.invalid:7700", {}, dialing::until_forgotten);
  EXPECT_TRUE(dialer.was_told("tcp://no.such.host.invalid:7700: could not be reached"));
}

TEST_F(ipv6, every_address_is_of_both_kinds) {
  auto options = peer::listening("tcp://*:0");
  options.insecure = true;
  peer everywhere(options, true);
  expect_answers("tcp://[::1]" + port_of(everywhere));
  expect_answers("tcp://127.0.0.1" + port_of(everywhere));
}

}  // namespace
}  // namespace troupe
