#include "cluster/config/config_address.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

TEST(web_origin, is_what_browsers_say_of_a_page) {
  for (const char* origin : {"https://chat.example.org", "http://localhost:3000", "https://a.example:8443",
                             "http://[::1]:3000", "http://[::1]", "http://192.168.0.7", "app://obsidian.md",
                             "chrome-extension://abcdefghijklmnop", "http://a.example:443"})
    EXPECT_TRUE(is_web_origin(origin)) << origin;
  for (const char* other : {"",
                            "*",
                            "null",
                            "chat.example.org",
                            "https://",
                            "://a.example",
                            "https://*",
                            "https://*:3000",
                            "https://*.example.org",
                            "https://a.example/",
                            "https://a.example/chat",
                            "https://A.example",
                            "HTTPS://a.example",
                            "https://a.example:443",
                            "http://a.example:80",
                            "https://a.example:",
                            "https://a.example:x",
                            "https://a.example:99999",
                            "https://a b",
                            "https://ann@a.example",
                            "https://bücher.example",
                            "ht tp://a.example"})
    EXPECT_FALSE(is_web_origin(other)) << other;
}

}  // namespace
}  // namespace troupe
