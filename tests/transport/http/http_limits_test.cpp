// What clients may hold of a server: connections, and room for bodies and answers.
#include "transport/http/http_server.hpp"

#include <algorithm>
#include <atomic>
#include <deque>

#include <gtest/gtest.h>

#include "tests/base/open_files.hpp"
#include "tests/base/soon.hpp"
#include "tests/transport/http/http_server_fixture.hpp"
#include "tests/transport/http/raw_client.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class http_limits : public http_server_test {};

TEST_F(http_limits, serves_others_while_some_announce_bodies_that_do_not_come) {
  start({.body_bytes = 1 << 20, .bodies_bytes = 1 << 20});
  std::deque<raw_client> silent;
  for (int i = 0; i < 8; ++i)
    silent.emplace_back(server_->port()).say("POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\na");
  raw_client other(server_->port());
  other.say(get("/later"));  // by then the heads before it have been read
  next_kept()->reply({.content_type = "text/plain", .body = "ok"});
  EXPECT_TRUE(other.hear_response().ends_with("ok"));
  for (const std::size_t length : {std::size_t{5}, std::size_t{500'000}}) {
    other.say(post("/x", std::string(length, 'b')));
    EXPECT_EQ(status_of(other.hear_response()), 200) << length;
  }
}

TEST_F(http_limits, serves_short_requests_while_long_ones_take_all_room) {
  start({.body_bytes = 1 << 20, .bodies_bytes = 200'000});
  raw_client greedy(server_->port()), other(server_->port());
  greedy.say("POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 1048576\r\n\r\n" + std::string(99'000, 'a'));
  other.say(post("/x", "hello"));
  EXPECT_TRUE(other.hear_response().ends_with("POST /x hello"));
}

TEST_F(http_limits, has_room_for_others_once_a_long_request_has_come_or_was_refused) {
  start({.body_bytes = 1 << 20, .bodies_bytes = 2 << 20});
  const std::string body(700'000, 'a');
  raw_client answered(server_->port()), refused(server_->port()), other(server_->port());
  answered.say(post("/later", body));
  const auto exchange = next_kept();
  refused.say("POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + ("aae60\r\n" + body) +
              "\r\nno size\r\n");
  EXPECT_EQ(status_of(refused.hear_response()), 400);  // its connection is there for a while
  other.say(post("/x", body));
  EXPECT_EQ(status_of(other.hear_response()), 200);
}

TEST_F(http_limits, counts_what_has_come_of_chunked_bodies) {
  start({.body_bytes = 1 << 20, .bodies_bytes = 1 << 20});
  const std::string head = "POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
  std::deque<raw_client> unfinished;
  for (int i = 0; i < 8; ++i) unfinished.emplace_back(server_->port()).say(head);
  raw_client other(server_->port());
  other.say(post("/x", "hello"));
  EXPECT_TRUE(other.hear_response().ends_with("POST /x hello"));
  for (raw_client& client : unfinished) {
    client.say("2\r\nde\r\n0\r\n\r\n");
    EXPECT_TRUE(client.hear_response().ends_with("POST /x abcde"));
  }
}

TEST_F(http_limits, refuses_chunked_bodies_that_are_too_many) {
  start({.bodies_bytes = 200'000});
  const std::string head = "POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
  const std::string chunk = "8000\r\n" + std::string(0x8000, 'x') + "\r\n";
  raw_client client(server_->port());
  client.say(head + chunk + chunk + chunk + chunk);
  EXPECT_NE(client.hear_response().find(" 503 "), std::string::npos);
}

/// One address gets half of the room, and all addresses together no more than there is.
TEST_F(http_limits, leaves_room_to_others_whatever_one_address_holds) {
  std::atomic<int> held{0};
  start({.bodies_bytes = 300'000}, {.takes_long_body = [&](const http_request& head) {
          held += head.header("x-hold").empty() ? 0 : 1;  // once as much has come of one that it counts
          return true;
        }});
  const std::string begun = "POST /x HTTP/1.1\r\nhost: x\r\nx-hold: 1\r\ntransfer-encoding: chunked\r\n\r\n" +
                            ("11171\r\n" + std::string(70'000, 'x'));
  std::deque<raw_client> holding;
  const auto hold_twice = [&](std::uint32_t from) {
    for (int i = 0; i < 2; ++i) holding.emplace_back(server_->port(), 0, 10s, from).say(begun);
    ASSERT_TRUE(is_soon([&] { return held == static_cast<int>(holding.size()); }));
  };
  const auto status_for = [&](std::uint32_t from) {
    raw_client client(server_->port(), 0, 10s, from);
    client.say(post("/x", std::string(66'000, 'x')));
    return status_of(client.hear_response());
  };
  hold_twice(1);
  EXPECT_EQ(status_for(1), 503);
  EXPECT_EQ(status_for(2), 200);
  hold_twice(2);
  EXPECT_EQ(status_for(3), 503);
  for (raw_client& each : holding) {
    each.say("y\r\n0\r\n\r\n");
    EXPECT_EQ(status_of(each.hear_response()), 200);
  }
  EXPECT_EQ(status_for(1), 200);
  server_.reset();  // it calls what counts here
}

TEST_F(http_limits, takes_no_more_connections_than_it_may) {
  std::atomic<int> surplus{0};
  start({.max_connections = 2}, {.on_surplus = [&] { ++surplus; }});
  raw_client first(server_->port()), second(server_->port());
  first.say(get("/later"));
  const auto of_first = next_kept();
  second.say("POST /x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 70000\r\n\r\n");
  EXPECT_EQ(second.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  raw_client third(server_->port());
  third.say(get("/"));
  EXPECT_EQ(third.hear_all(), "");
  EXPECT_EQ(surplus, 1);
  second.say(std::string(70'000, 'x'));
  EXPECT_EQ(status_of(second.hear_response()), 200) << "a long body may take its time";
  server_.reset();  // it calls what counts them here
}

/// Whether they have asked before, have not said anything yet, or say half of a request.
TEST_F(http_limits, gives_the_place_of_who_asks_nothing_to_who_comes) {
  std::atomic<int> surplus{0};
  start({.max_connections = 2}, {.on_surplus = [&] { ++surplus; }});
  raw_client busy(server_->port());
  busy.say(get("/later"));
  const auto exchange = next_kept();
  for (const std::string& said : {get("/"), std::string(), std::string("GET / HT"),
                                  std::string("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc")}) {
    raw_client idle(server_->port());
    idle.say(said);
    EXPECT_TRUE(said != get("/") || status_of(idle.hear_response()) == 200);
    raw_client next(server_->port());
    next.say(get("/"));
    EXPECT_EQ(status_of(next.hear_response()), 200) << said;
    EXPECT_EQ(idle.hear_all(), "") << said;
  }
  exchange->reply({.content_type = "text/plain", .body = "ok"});
  EXPECT_TRUE(busy.hear_response().ends_with("ok"));
  server_.reset();
  EXPECT_EQ(surplus, 0);
}

TEST_F(http_limits, gives_up_who_was_silent_the_longest_and_who_is_trusted_last) {
  start({.max_connections = 3});
  const auto is_answered = [](raw_client& client, const std::string& path = "/") {
    return client.say(get(path)) && status_of(client.hear_response()) == 200;
  };
  raw_client trusted(server_->port()), first(server_->port()), second(server_->port());
  EXPECT_TRUE(is_answered(trusted, "/trusted"));
  EXPECT_TRUE(is_answered(first));
  EXPECT_TRUE(is_answered(second));
  EXPECT_TRUE(is_answered(first));
  raw_client third(server_->port());
  EXPECT_TRUE(is_answered(third));
  EXPECT_EQ(second.hear_all(), "");
  EXPECT_TRUE(is_answered(first));
  EXPECT_TRUE(is_answered(trusted));
  std::vector<std::shared_ptr<http_exchange>> in_progress;
  for (raw_client* each : {&first, &third}) {
    each->say(get("/later"));
    in_progress.push_back(next_kept());
  }
  raw_client fourth(server_->port());
  EXPECT_TRUE(is_answered(fourth));
  EXPECT_EQ(trusted.hear_all(), "");
  EXPECT_TRUE(trusted.was_closed()) << "as there is nobody else";
}

/// A storm of clients must not take from a head what its journal and its nodes need.
TEST_F(http_limits, leaves_half_of_the_files_that_may_be_open) {
  {
    const few_open_files few(64);
    start();
  }
  std::deque<raw_client> clients;
  std::vector<std::shared_ptr<http_exchange>> in_progress;
  for (int i = 0; i < 32; ++i) {
    clients.emplace_back(server_->port()).say(get("/later"));
    in_progress.push_back(next_kept());
  }
  raw_client surplus(server_->port());
  surplus.say(get("/"));
  EXPECT_EQ(surplus.hear_all(), "");
}

}  // namespace
}  // namespace troupe::test
