#include "transport/http/http_router.hpp"

#include <gtest/gtest.h>

#include "base/percent_decoded.hpp"

namespace troupe::test {
namespace {

TEST(http_router, finds_by_method_and_path) {
  http_router routes;
  const http_handler nothing = [](http_request&&, std::shared_ptr<http_exchange>) {};
  routes.add("GET", "/", nothing);
  routes.add("GET", "/files/{id}/content", nothing);
  routes.add("POST", "/files", nothing);
  routes.add("GET", "/files", nothing);
  EXPECT_TRUE(routes.find("GET", "/").handler);
  EXPECT_TRUE(routes.find("HEAD", "/").handler);
  const auto found = routes.find("GET", "/files/a-7/content");
  ASSERT_TRUE(found.handler);
  EXPECT_EQ(found.path_parts, std::vector<std::string>{"a-7"});
  EXPECT_FALSE(routes.find("GET", "/files/a/b/content").handler);
  EXPECT_FALSE(routes.find("GET", "/files/").handler);
  EXPECT_FALSE(routes.find("GET", "").handler);
  for (const char* no_path : {"*", "Xfiles", "files"}) EXPECT_FALSE(routes.find("GET", no_path).handler) << no_path;
  const auto other = routes.find("DELETE", "/files");
  EXPECT_FALSE(other.handler);
  EXPECT_EQ(other.allowed, "POST, GET");
}

TEST(http_router, gives_no_places_of_a_route_that_only_begins_like_the_path) {
  http_router router;
  for (const char* path : {"/a/{x}/b", "/a/{y}/c"})
    router.add("GET", path, [](http_request&&, const std::shared_ptr<http_exchange>&) {});
  EXPECT_EQ(router.find("GET", "/a/1/c").path_parts, std::vector<std::string>{"1"});
}

TEST(http_router, gives_the_last_place_what_is_left_where_the_route_says_so) {
  http_router routes;
  const http_handler nothing = [](http_request&&, std::shared_ptr<http_exchange>) {};
  routes.add("GET", "/models", nothing);
  routes.add("GET", "/models/{id...}", nothing);
  EXPECT_EQ(routes.find("GET", "/models/a").path_parts, std::vector<std::string>{"a"});
  EXPECT_EQ(routes.find("GET", "/models/a/b//c").path_parts, std::vector<std::string>{"a/b//c"});
  EXPECT_EQ(routes.find("GET", "/models").path_parts, std::vector<std::string>{});
  EXPECT_FALSE(routes.find("GET", "/others/a").handler);
}

TEST(http_message, decodes_percents_and_queries) {
  EXPECT_EQ(percent_decoded("%41%2fb%zz%4"), "A/b%zz%4");
  http_request request;
  request.query = "a=1&b=%20x&&c";
  EXPECT_EQ(request.query_value("a"), "1");
  EXPECT_EQ(request.query_value("b"), " x");
  EXPECT_EQ(request.query_value("c"), "");
  EXPECT_EQ(request.query_value("d"), "");
  request.query = "red+team=a+b%2Bc";
  EXPECT_EQ(request.query_value("red team"), "a b+c") << "as forms are written";
}

}  // namespace
}  // namespace troupe::test
