#include "base/host_port.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(host_port, is_split_at_the_last_colon) {
  for (const auto& [text, host, port] :
       {std::tuple("node1:80", "node1", 80), std::tuple("[::1]:0", "::1", 0), std::tuple("*:65535", "*", 65535),
        std::tuple("[fe80::1%eth0]:7", "fe80::1%eth0", 7)}) {
    const auto place = split_host_port(text);
    ASSERT_TRUE(place) << text;
    EXPECT_EQ(place->host, host);
    EXPECT_EQ(place->port, port);
  }
  for (const char* other : {"", ":", "node1", "node1:", ":80", "::1:80", "[::1]", "[]:80", "node1:65536", "node1:-1",
                            "node1:*", "-x:80", "a b:80"})
    EXPECT_FALSE(split_host_port(other)) << other;
}

TEST(host_port, of_an_endpoint_comes_after_its_kind) {
  EXPECT_EQ(split_endpoint("tcp://[::1]:7")->host, "::1");
  for (const char* other : {"node1:80", "udp://node1:80", "ipc:///tmp/x", "tcp://"})
    EXPECT_FALSE(split_endpoint(other)) << other;
}

TEST(host_port, is_written_as_it_is_read) {
  for (const char* text : {"node1:80", "[::1]:0", "*:65535"}) EXPECT_EQ(text_of(*split_host_port(text)), text);
}

TEST(an_ipc_endpoint, names_a_file) {
  EXPECT_EQ(socket_file("ipc:///tmp/x"), "/tmp/x");
  EXPECT_FALSE(socket_file("tcp://node1:80"));
}

TEST(a_loopback_host, is_reached_from_its_own_machine_alone) {
  for (const char* own : {"localhost", "Localhost", "127.0.0.1", "127.9.9.9", "::1", "0:0:0:0:0:0:0:1"})
    EXPECT_TRUE(is_loopback_host(own)) << own;
  for (const char* other : {"", "*", "0.0.0.0", "::", "127.evil.com", "10.0.0.1", "node1"})
    EXPECT_FALSE(is_loopback_host(other)) << other;
}

TEST(names_of_hosts, mean_one_if_they_differ_in_spelling_or_are_both_of_the_loopback) {
  EXPECT_TRUE(on_one_host("node1", "node1"));
  EXPECT_TRUE(on_one_host("node1", "Node1"));
  EXPECT_TRUE(on_one_host("fd00::a", "FD00:0::000A"));
  EXPECT_TRUE(on_one_host("localhost", "127.0.0.1"));
  EXPECT_TRUE(on_one_host("LOCALHOST", "::1"));
  EXPECT_FALSE(on_one_host("node1", "node2"));
  EXPECT_FALSE(on_one_host("node1", "localhost"));
}

}  // namespace
}  // namespace troupe
