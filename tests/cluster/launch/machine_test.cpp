#include "cluster/launch/machine.hpp"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cctype>
#include <string>
#include <string_view>

#include "cluster/launch/launch.hpp"

// The tests' own name server: own.test has two addresses of this machine, half.test one and one of another.
extern "C" int getaddrinfo(const char* host, const char* port, const addrinfo* hints, addrinfo** found) {
  static const auto of_the_machine = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view name = host != nullptr ? host : "";
  if (name == "unknown.test") return EAI_NONAME;
  if (name != "own.test" && name != "half.test") return of_the_machine(host, port, hints, found);
  const int fault = of_the_machine("127.0.0.7", port, hints, found);
  const char* const second = name == "own.test" ? "127.0.0.8" : "192.0.2.77";
  return fault != 0 ? fault : of_the_machine(second, port, hints, &(*found)->ai_next);
}

// The machine's addresses, and one more.
extern "C" int getifaddrs(ifaddrs** list) noexcept {
  static const auto of_the_machine = reinterpret_cast<decltype(&getifaddrs)>(::dlsym(RTLD_NEXT, "getifaddrs"));
  static sockaddr_in6 address{};
  static char name[] = "test0";
  static ifaddrs more{};
  address.sin6_family = AF_INET6;
  ::inet_pton(AF_INET6, "2001:db8::a", &address.sin6_addr);
  more.ifa_name = name;
  more.ifa_addr = reinterpret_cast<sockaddr*>(&address);
  if (const int fault = of_the_machine(list); fault != 0) return fault;
  while (*list) list = &(*list)->ifa_next;
  *list = &more;
  return 0;
}

namespace troupe {
namespace {

TEST(this_machine, is_a_loopback_and_its_own_name) {
  for (const char* host : {"127.0.0.1", "localhost", "::1"}) EXPECT_TRUE(is_this_machine(host)) << host;
  EXPECT_TRUE(is_this_machine(machine_name()));
  EXPECT_FALSE(is_this_machine("192.0.2.77"));
}

TEST(this_machine, is_its_addresses_and_its_name_however_they_are_written) {
  for (const char* host : {"2001:db8::a", "2001:DB8:0::000A", "LocalHost"}) EXPECT_TRUE(is_this_machine(host)) << host;
  std::string name = machine_name();
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  EXPECT_TRUE(is_this_machine(name)) << name;
  EXPECT_FALSE(is_this_machine("2001:db8::b"));
}

TEST(this_machine, has_a_space_of_process_ids_in_each_container) {
  EXPECT_NE(pid_space(), machine_id());
  EXPECT_EQ(machine_of(pid_space()), machine_id());
  EXPECT_EQ(machine_of("m"), "m");
}

TEST(this_machine, is_a_name_that_stands_for_its_addresses_alone) {
  EXPECT_TRUE(is_this_machine("own.test"));
  EXPECT_FALSE(is_this_machine("half.test"));
  EXPECT_FALSE(is_this_machine("unknown.test"));
  node_config node;
  node.host = "own.test";
  EXPECT_FALSE(is_remote(node)) << "ssh would lead from this machine to itself";
  node.host = "half.test";
  EXPECT_TRUE(is_remote(node));
}

}  // namespace
}  // namespace troupe
