#include "transport/zmq/endpoint.hpp"

#include <gtest/gtest.h>

namespace troupe::detail {
namespace {

TEST(endpoint, of_loopback_is_known) {
  for (const char* where : {"ipc:///tmp/x", "tcp://[::1]:1"}) EXPECT_TRUE(is_loopback(where)) << where;
  for (const char* where : {"tcp://*:5", "nonsense"}) EXPECT_FALSE(is_loopback(where)) << where;
}

}  // namespace
}  // namespace troupe::detail
