#include <netdb.h>
#include <sys/socket.h>

#include <optional>
#include <string_view>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/host_port.hpp"
#include "tests/transport/zmq/peer.hpp"

// The tests' own name server, which libzmq asks as it asks the machine's: six.test has an address of IPv6 alone,
// both.test has one of each kind.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  static const auto of_the_machine = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = host != nullptr ? host : "";
  if (name != "six.test" && name != "both.test") return of_the_machine(host, port, hints, found);
  const bool is_six = hints->ai_family == AF_INET6 || (name == "six.test" && hints->ai_family == AF_UNSPEC);
  if (!is_six && name == "six.test") return EAI_NONAME;
  return of_the_machine(is_six ? "::1" : "127.0.0.1", port, hints, found);
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

TEST_F(ipv6, every_address_is_of_both_kinds) {
  auto options = peer::listening("tcp://*:0");
  options.insecure = true;
  peer everywhere(options, true);
  expect_answers("tcp://[::1]" + port_of(everywhere));
  expect_answers("tcp://127.0.0.1" + port_of(everywhere));
}

}  // namespace
}  // namespace troupe
