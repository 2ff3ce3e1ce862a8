// What a server reads of requests, which it refuses, and how it begins and ends.
#include "transport/http/http_server.hpp"
#include "base/to_size.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "tests/base/soon.hpp"
#include "tests/transport/http/http_server_fixture.hpp"
#include "tests/transport/http/raw_client.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

TEST_F(http_server_test, answers_with_a_request_id_and_keeps_the_connection) {
  start();
  raw_client client(server_->port());
  client.say(get("/a%20b?x=1"));
  const std::string first = client.hear_response();
  EXPECT_TRUE(first.ends_with("GET /a b ")) << first;
  EXPECT_NE(first.find("x-request-id: req-"), first.npos);
  client.say(get("http://elsewhere:80/c?x=1"));
  EXPECT_TRUE(client.hear_response().ends_with("GET /c "));
  for (const auto& [asked, path] : {std::pair("/d/", "/d"), {"/", "/"}, {"/d//", "/d/"}}) {
    client.say(get(asked));
    EXPECT_TRUE(client.hear_response().ends_with(std::string("GET ") + path + " ")) << asked;
  }
  client.say(get("/again", "x-request-id: mine-7\r\n"));
  EXPECT_NE(client.hear_response().find("x-request-id: mine-7"), first.npos);
  client.say(get("/again", "x-request-id: <b>\r\n"));
  EXPECT_NE(client.hear_response().find("x-request-id: req-"), first.npos) << "it is no name";
}

TEST_F(http_server_test, checks_every_head_of_a_connection) {
  start();
  raw_client client(server_->port());
  client.say(get("/") + "GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(status_of(client.hear_response()), 200);
  EXPECT_EQ(status_of(client.hear_response()), 400) << "it names no host";
}

TEST_F(http_server_test, reads_a_head_as_long_as_it_may_be) {
  start({.header_bytes = 16 << 10});
  raw_client client(server_->port());
  client.say(get("/", "x: " + std::string(15'000, 'a') + "\r\n"));
  EXPECT_EQ(status_of(client.hear_response()), 200);
}

TEST_F(http_server_test, answers_pipelined_requests_in_their_order) {
  start();
  raw_client client(server_->port());
  client.say(get("/later") + post("/1", "one") + get("/later") + post("/2", "two") + get("/3"));
  next_kept()->reply({.content_type = "text/plain", .body = "first"});
  EXPECT_TRUE(client.hear_response().ends_with("first"));
  EXPECT_TRUE(client.hear_response().ends_with("POST /1 one"));
  next_kept()->reply({.content_type = "text/plain", .body = "second"});
  EXPECT_TRUE(client.hear_response().ends_with("second"));
  EXPECT_TRUE(client.hear_response().ends_with("POST /2 two"));
  EXPECT_TRUE(client.hear_response().ends_with("GET /3 "));
}

TEST_F(http_server_test, reads_a_request_that_comes_while_another_is_answered) {
  start();
  raw_client client(server_->port());
  std::string big(3000, 'a');
  for (int i = 0; i < 50; ++i) {
    client.say(get("/later"));
    const auto exchange = next_kept();
    big[to_size(i)] = 'b';
    client.say(post("/x", big));
    exchange->reply({.content_type = "text/plain", .body = "ok"});
    EXPECT_TRUE(client.hear_response().ends_with("ok"));
    ASSERT_TRUE(client.hear_response().ends_with("POST /x " + big));
  }
}

TEST_F(http_server_test, reads_requests_byte_by_byte) {
  start();
  raw_client client(server_->port());
  for (const char c : post("/x", "hello")) client.say({&c, 1});
  EXPECT_TRUE(client.hear_response().ends_with("POST /x hello"));
}

TEST_F(http_server_test, reads_chunked_bodies) {
  start();
  raw_client client(server_->port());
  client.say("POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_TRUE(client.hear_response().ends_with("POST /x abcde"));
}

/// Or whoever can add them to a request, behind a proxy that looks at headers, could add any.
TEST_F(http_server_test, takes_fields_behind_a_body_for_no_headers) {
  start({}, {.more_headers = [](const http_request& to) {
          return http_headers{{"x-heard", std::string(to.header("x-key"))}};
        }});
  const std::string head = "POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n";
  const std::string body = "\r\n3\r\nabc\r\n0\r\nx-key: behind\r\n\r\n";
  raw_client client(server_->port());
  for (const std::string key : {"", "x-key: before\r\n"}) {
    client.say(head + key + body);
    const std::string heard = client.hear_response();
    EXPECT_TRUE(heard.ends_with("POST /x abc"));
    EXPECT_NE(heard.find(key.empty() ? "x-heard: \r\n" : "x-heard: before\r\n"), heard.npos) << heard;
  }
}

/// So that strangers take up no room.
TEST_F(http_server_test, reads_long_bodies_only_of_whom_it_takes_them_from) {
  start({.bodies_bytes = 0},
        {.takes_long_body = [](const http_request& head) { return head.header("x-key") == "ok"; }});
  const std::string head = "POST /x HTTP/1.1\r\nhost: x\r\n", long_one = "content-length: 1000000\r\n";
  raw_client announced(server_->port()), waiting(server_->port()), chunked(server_->port()), known(server_->port());
  announced.say(head + long_one + "\r\n");
  EXPECT_TRUE(announced.hear_all().ends_with("POST /x ")) << "answered before the body, and closed";
  waiting.say(head + long_one + "expect: 100-continue\r\n\r\n");
  EXPECT_EQ(status_of(waiting.hear_all()), 200) << "not told to go on";
  chunked.say(head + "transfer-encoding: chunked\r\n\r\n11170\r\n" + std::string(70'000, 'x'));
  EXPECT_TRUE(chunked.hear_all().ends_with("POST /x ")) << "as soon as it is long";
  known.say(head + long_one + "x-key: ok\r\n\r\n" + std::string(70'000, 'x'));
  EXPECT_EQ(status_of(known.hear_response()), 503) << "was read, and found no room";
  raw_client brief(server_->port());
  brief.say(post("/x", "hello"));
  EXPECT_TRUE(brief.hear_response().ends_with("POST /x hello"));
}

/// Many clients send all of a body before they read why nobody wants it.
TEST_F(http_server_test, reads_to_its_end_what_nobody_wants_before_it_closes) {
  start({.body_bytes = 24 << 20}, {.takes_long_body = [](const http_request&) { return false; }});
  raw_client client(server_->port());
  EXPECT_TRUE(client.say(post("/x", std::string(24 << 20, 'x'))));
  EXPECT_TRUE(client.hear_response().ends_with("POST /x "));
  EXPECT_EQ(client.hear_all(), "");
  EXPECT_TRUE(client.was_closed());
}

TEST_F(http_server_test, reads_longer_what_nobody_wants_as_long_as_it_comes) {
  start({.header_time = 1s, .body_rate = 1, .linger_time = 500ms},
        {.takes_long_body = [](const http_request&) { return false; }});
  raw_client slow(server_->port()), silent(server_->port());
  for (raw_client* each : {&slow, &silent}) {
    each->say("POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 9000000\r\n\r\n");
    EXPECT_TRUE(each->hear_all().ends_with("POST /x "));
    if (each == &slow) slow.say(std::string(60, 'x'));
  }
  raw_client late(server_->port());
  late.say("GET / HT");
  EXPECT_EQ(status_of(late.hear_all()), 408);  // so that time has passed
  const std::string rest(8'000'000, 'x');      // more than sockets hold
  EXPECT_TRUE(slow.say(rest));
  EXPECT_FALSE(silent.say(rest));
}

/// Neither what stands behind a chunk's size nor what follows the last chunk ever ends.
TEST_F(http_server_test, bounds_what_surrounds_chunks) {
  start({.header_bytes = 2048});
  const std::string head = "POST /x HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
  for (const std::string begun : {"1;note=", "0", "1\r\na\r\n0\r\nfield: ", "0\r\na: b\r\n"}) {
    raw_client client(server_->port());
    client.say(head + begun + std::string(10'000, '0'));
    EXPECT_EQ(status_of(client.hear_all()), 431) << begun;
  }
  raw_client client(server_->port());
  client.say(head + "1;note=short\r\na\r\n0\r\nfield: short\r\n\r\n");
  EXPECT_TRUE(client.hear_response().ends_with("POST /x a"));
}

TEST_F(http_server_test, tells_a_client_that_waits_to_go_on) {
  start();
  raw_client client(server_->port());
  client.say("POST /x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  EXPECT_EQ(client.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.say("ok");
  EXPECT_TRUE(client.hear_response().ends_with("POST /x ok"));
}

TEST_F(http_server_test, gives_up_on_a_client_that_was_told_to_go_on_and_does_not) {
  start({.header_time = 1min, .body_time = 40ms, .write_time = 1min});
  raw_client client(server_->port());
  client.say("POST /x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n");
  client.hear_until("\r\n\r\n");
  EXPECT_EQ(status_of(client.hear_response()), 408);
}

/// Whether it is an answer or the word to go on for which there is no room is up to the kernel, hence several clients.
TEST_F(http_server_test, drops_clients_that_do_not_read_that_they_may_go_on) {
  constexpr std::size_t count = 8;
  start({.max_connections = count, .body_time = 200ms, .write_time = 200ms});
  const std::string request = "HEAD /x HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 100000\r\n\r\n" +
                              std::string(100'000, 'x');
  std::deque<raw_client> deaf;
  std::vector<std::future<void>> speakers;
  while (deaf.size() < count) {
    raw_client& client = deaf.emplace_back(server_->port(), 2048, 1s);
    speakers.push_back(std::async(std::launch::async, [&] {
      while (client.say(request)) {
      }
    }));
  }
  for (auto& each : speakers) each.get();
  const auto serves_as_many_again = [&] {
    std::deque<raw_client> others;
    while (others.size() < count) others.emplace_back(server_->port());
    return std::all_of(others.begin(), others.end(),
                       [](raw_client& each) { return each.say(get("/x")) && status_of(each.hear_response()) == 200; });
  };
  EXPECT_TRUE(is_soon(serves_as_many_again));
}

TEST_F(http_server_test, tells_nobody_to_go_on_who_would_not_understand_it) {
  start();
  const auto answer_to = [&](const std::string& version, const std::string& expect) {
    raw_client client(server_->port());
    client.say("POST /x " + version + "\r\nhost: x\r\nexpect: " + expect + "\r\ncontent-length: 2\r\n\r\n");
    client.say("ok");
    return status_of(client.hear_response());
  };
  EXPECT_EQ(answer_to("HTTP/1.0", "100-continue"), 200);
  EXPECT_EQ(answer_to("HTTP/1.1", "something"), 200);
}

TEST_F(http_server_test, names_the_encoding_of_a_body_that_it_does_not_read) {
  start({}, {.error_body = [](std::string_view why) { return std::string(why); }});
  const std::string head = "POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\ncontent-encoding: ";
  raw_client packed(server_->port()), plain(server_->port()), none(server_->port());
  packed.say(head + "gzip\r\n\r\nok");
  EXPECT_NE(packed.hear_response().find("content-encoding gzip"), std::string::npos);
  plain.say(head + "Identity\r\n\r\nok");
  EXPECT_TRUE(plain.hear_response().ends_with("POST /x ok"));
  none.say(get("/x", "content-encoding: gzip\r\n"));
  EXPECT_TRUE(none.hear_response().ends_with("GET /x ")) << "there is no body";
}

TEST_F(http_server_test, passes_over_empty_lines_before_a_request) {
  start();
  raw_client client(server_->port());
  client.say("\r\n" + post("/x", "ok") + "\r\n\r\n" + get("/next"));
  EXPECT_TRUE(client.hear_response().ends_with("POST /x ok"));
  EXPECT_TRUE(client.hear_response().ends_with("GET /next "));
}

TEST_F(http_server_test, answers_500_where_a_handler_gives_up) {
  start();
  raw_client client(server_->port());
  client.say(get("/throw") + get("/drop") + get("/fine"));
  EXPECT_EQ(status_of(client.hear_response()), 500);
  EXPECT_EQ(status_of(client.hear_response()), 500);
  EXPECT_EQ(status_of(client.hear_response()), 200);
}

struct bad_case {
  const char* name;
  std::string request;
  int status;
};

class bad_requests : public http_server_test, public testing::WithParamInterface<bad_case> {};

TEST_P(bad_requests, are_answered_and_the_connection_closed) {
  start({.header_bytes = 2048, .body_bytes = 1000});
  raw_client client(server_->port());
  client.say(GetParam().request);
  const std::string all = client.hear_all();
  EXPECT_EQ(status_of(all), GetParam().status) << all.substr(0, 200);
  EXPECT_NE(all.find("connection: close"), all.npos);
  EXPECT_NE(all.find("x-request-id: "), all.npos);
}

INSTANTIATE_TEST_SUITE_P(
    http, bad_requests,
    testing::Values(
        bad_case{"noise", "\x16\x03\x01\x02\xff\xfe\x00garbage\r\n\r\n", 400},
        bad_case{"no_version", "GET /\r\n\r\n", 400}, bad_case{"old", "GET / HTTP/3.7\r\n\r\n", 505},
        bad_case{"long_head", "GET / HTTP/1.1\r\nx: " + std::string(5000, 'a') + "\r\n\r\n", 431},
        bad_case{"long_line", "GET /" + std::string(5000, 'a') + " HTTP/1.1\r\n\r\n", 431},
        bad_case{"long_body", "POST / HTTP/1.1\r\ncontent-length: 1001\r\n\r\n", 413},
        bad_case{"endless", "POST / HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n", 400},
        bad_case{"negative", "POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400},
        bad_case{"bad_chunk", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", 400},
        bad_case{"huge_chunk", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nfffff\r\n", 413},
        bad_case{"unknown_coding", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: identity\r\n\r\n", 501},
        bad_case{"two_codings", "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
        bad_case{"coding_before_end",
                 "POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501},
        bad_case{"bad_field", "GET / HTTP/1.1\r\nno colon\r\n\r\n", 400},
        bad_case{"no_host", "GET / HTTP/1.1\r\n\r\n", 400},
        bad_case{"no_path", "GET Xv1/models HTTP/1.1\r\nhost: x\r\n\r\n", 400},
        bad_case{"escaped_slash", "GET %2fv1/models HTTP/1.1\r\nhost: x\r\n\r\n", 400},
        bad_case{"other_scheme", "GET ftp://x/v1/models HTTP/1.1\r\nhost: x\r\n\r\n", 400},
        bad_case{"two_hosts", "GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", 400},
        bad_case{"packed_body", "POST / HTTP/1.1\r\nhost: x\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\n",
                 415}),
    [](const auto& info) { return std::string(info.param.name); });

/// Browsers let a page read of an answer only what its headers allow: also why it was refused.
TEST_F(http_server_test, gives_what_it_answers_by_itself_the_headers_of_every_response) {
  start({.header_bytes = 2048, .body_bytes = 1000, .header_time = 500ms, .body_time = 100ms},
        {.more_headers = [](const http_request& request) {
          return http_headers{{"vary", "Origin"}, {"for", std::string(request.header("origin"))}};
        }});
  const auto answer_to = [&](const std::string& request) {
    raw_client client(server_->port());
    client.say(request);
    return client.hear_response();
  };
  const std::string posting = "POST / HTTP/1.1\r\nhost: x\r\nOrigin: me\r\n",
                    getting = "GET / HTTP/1.1\r\nOrigin: me\r\n";
  const std::pair<std::string, int> cases[] = {
      {getting + "host: x\r\n\r\n", 200},
      {get("/drop", "origin: me\r\n"), 500},
      {get("/throw", "origin: me\r\n"), 500},
      {getting + "\r\n", 400},
      {getting + "no colon\r\n\r\n", 400},
      {getting + "x: " + std::string(5000, 'a'), 431},
      {getting + "x: not at its end", 408},
      {posting + "content-length: 1001\r\n\r\n", 413},
      {posting + "content-length: 10\r\n\r\nfew", 408},
      {posting + "transfer-encoding: chunked\r\n\r\nzz\r\n", 400},
  };
  for (const auto& [request, status] : cases) {
    const std::string answer = answer_to(request);
    EXPECT_EQ(status_of(answer), status) << request;
    EXPECT_NE(answer.find("vary: Origin\r\nfor: me\r\n"), answer.npos) << request << answer;
  }
  EXPECT_NE(answer_to("GET / HTTP/1.1\r\norigin: me").find("for: \r\n"), std::string::npos) << "it may go on: me.evil";
}

TEST_F(http_server_test, gives_what_it_answers_by_itself_the_clients_own_id) {
  start({.header_bytes = 2048, .body_bytes = 1000, .header_time = 500ms, .body_time = 100ms});
  const auto has_id = [&](const std::string& request, int status) {
    raw_client client(server_->port());
    client.say(request);
    const std::string answer = client.hear_response();
    EXPECT_EQ(status_of(answer), status) << answer;
    return answer.find("x-request-id: my-id-1\r\n") != answer.npos;
  };
  const std::string head = "POST / HTTP/1.1\r\nhost: x\r\nx-request-id: my-id-1\r\n";
  EXPECT_TRUE(has_id(head + "content-encoding: gzip\r\ncontent-length: 2\r\n\r\nok", 415));
  EXPECT_TRUE(has_id(head + "content-length: 1001\r\n\r\n", 413));
  EXPECT_TRUE(has_id(head + "transfer-encoding: identity\r\n\r\n", 501));
  EXPECT_TRUE(has_id(head + "content-length: 10\r\n\r\nfew", 408));
  EXPECT_TRUE(has_id(head + "x: not at its end", 408));
  EXPECT_TRUE(has_id(head + "x: " + std::string(5000, 'a'), 431));
  EXPECT_FALSE(has_id("POST / HTTP/1.1\r\nx-request-id: \"no name\"\r\n\r\n", 400));
  EXPECT_FALSE(has_id("POST / HTTP/1.1\r\nx-request-id: my-id-1", 408)) << "it may go on";
}

TEST_F(http_server_test, says_how_long_a_body_may_be) {
  start({.body_bytes = 1000});
  raw_client client(server_->port());
  client.say("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1001\r\n\r\n");
  EXPECT_NE(client.hear_all().find("the body is longer than 1000 bytes: send less at a time"), std::string::npos);
}

TEST_F(http_server_test, gives_up_on_half_a_request) {
  start({.header_time = 500ms, .body_time = 40ms});
  raw_client head(server_->port()), body(server_->port()), silent(server_->port());
  head.say("GET / HT");
  body.say("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc");
  EXPECT_EQ(status_of(head.hear_all()), 408);
  EXPECT_EQ(status_of(body.hear_all()), 408);
  EXPECT_EQ(silent.hear_all(), "") << "who never said anything is not told anything";
  EXPECT_TRUE(silent.was_closed());
}

TEST_F(http_server_test, gives_up_on_half_a_request_whatever_came_before_it) {
  start({.idle = 1min, .header_time = 1s, .body_time = 1min});
  raw_client client(server_->port());
  client.say(get("/"));
  EXPECT_EQ(status_of(client.hear_response()), 200);
  client.say("GET / HT");
  EXPECT_EQ(status_of(client.hear_response()), 408);
}

TEST_F(http_server_test, gives_up_on_a_body_that_does_not_come) {
  start({.header_time = 1min, .body_time = 40ms});
  raw_client client(server_->port());
  client.say("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\nabc");
  EXPECT_EQ(status_of(client.hear_response()), 408);
}

TEST_F(http_server_test, waits_longer_for_a_long_body_as_long_as_it_comes) {
  start({.body_time = 500ms, .body_rate = 1});
  const std::string head = "POST /x HTTP/1.1\r\nhost: x\r\n";
  raw_client plain(server_->port()), chunked(server_->port()), told(server_->port());
  plain.say(head + "content-length: 64\r\n\r\n" + std::string(60, 'a'));
  chunked.say(head + "transfer-encoding: chunked\r\n\r\n3c\r\n" + std::string(60, 'a'));
  told.say(head + "expect: 100-continue\r\ncontent-length: 64\r\n\r\n");
  told.hear_until("\r\n\r\n");
  told.say(std::string(60, 'a'));
  raw_client silent(server_->port()), noting(server_->port());
  silent.say(head + "content-length: 64\r\n\r\n");
  noting.say(head + "transfer-encoding: chunked\r\n\r\n1;note=" + std::string(60, 'a'));
  for (raw_client* each : {&silent, &noting}) EXPECT_EQ(status_of(each->hear_all()), 408);  // so that time has passed
  plain.say("rest");
  chunked.say("\r\n4\r\nrest\r\n0\r\n\r\n");
  told.say("rest");
  for (raw_client* each : {&plain, &chunked, &told}) EXPECT_TRUE(each->hear_response().ends_with("aaarest"));
}

TEST_F(http_server_test, waits_for_an_answer_as_long_as_it_takes_and_counts_the_time_after_it) {
  start({.idle = 200ms, .header_time = 200ms, .body_time = 200ms, .write_time = 200ms});
  raw_client client(server_->port());
  client.say(get("/later"));
  const auto exchange = next_kept();
  raw_client streaming(server_->port());
  streaming.say(get("/later"));
  const auto stream = next_kept();
  stream->begin_stream({.content_type = "text/plain"});
  stream->send("first");
  streaming.hear_until("first");
  for (int i = 0; i < 2; ++i) {
    raw_client half(server_->port());
    half.say("GET / HT");
    EXPECT_EQ(status_of(half.hear_all()), 408);  // so all of these times have passed
  }
  exchange->reply({.content_type = "text/plain", .body = "ok"});
  EXPECT_TRUE(client.hear_response().ends_with("ok"));
  EXPECT_EQ(client.hear_all(), "");
  EXPECT_TRUE(client.was_closed());
  stream->send("second");
  EXPECT_TRUE(streaming.hear_until("second").ends_with("second"));
}

TEST_F(http_server_test, keeps_a_connection_that_is_used) {
  start({.idle = 1500ms});
  raw_client client(server_->port());
  const auto until = std::chrono::steady_clock::now() + 1700ms;
  while (std::chrono::steady_clock::now() < until) {
    client.say(get("/"));
    ASSERT_EQ(status_of(client.hear_response()), 200);
  }
}

TEST_F(http_server_test, closes_connections_that_are_idle) {
  start({.idle = 40ms});
  raw_client client(server_->port());
  client.say(get("/"));
  EXPECT_EQ(status_of(client.hear_response()), 200);
  EXPECT_EQ(client.hear_all(), "");
  EXPECT_TRUE(client.was_closed());
}

TEST_F(http_server_test, survives_noise) {
  start({.header_time = 200ms, .body_time = 200ms});
  std::mt19937 random(1);
  const std::string valid = post("/x", "hello world") + get("/y");
  for (int round = 0; round < 200; ++round) {
    std::string text = valid;
    for (int i = 0; i < 1 + round % 5; ++i) text[random() % text.size()] = static_cast<char>(random());
    if (round % 3 == 0) text.resize(random() % text.size());
    raw_client client(server_->port());
    client.say(text);
  }
  raw_client client(server_->port());
  client.say(get("/alive"));
  EXPECT_EQ(status_of(client.hear_response()), 200);
}

TEST_F(http_server_test, ends_with_streams_in_progress) {
  start({.grace = 50ms});
  raw_client client(server_->port());
  client.say(get("/later"));
  const auto exchange = next_kept();
  exchange->on_gone([this] { note_gone(); });
  server_->stop();
  EXPECT_TRUE(gone_);
  exchange->reply({.content_type = "text/plain", .body = "too late"});
}

TEST_F(http_server_test, waits_for_no_client_that_asks_nothing_when_it_ends) {
  start({.grace = 1h});
  raw_client client(server_->port()), other(server_->port());
  for (raw_client* each : {&client, &other}) {
    each->say(get("/"));
    EXPECT_EQ(status_of(each->hear_response()), 200);
  }
  server_->stop();
  EXPECT_EQ(client.hear_all(), "");
}

/// Whoever makes an answer does not know that nobody serves any more.
TEST_F(http_server_test, may_go_while_answers_are_being_sent) {
  for (int round = 0; round < 20; ++round) {
    start({.stream_backlog = 1 << 30, .grace = 0ms});
    raw_client client(server_->port());
    client.say(get("/later"));
    const auto exchange = next_kept();
    exchange->begin_stream({.content_type = "text/event-stream"});
    std::promise<void> sending;
    std::thread answering([&] {
      for (int pieces = 0; exchange->send("data: {}\n\n"); ++pieces)
        if (pieces == 10) sending.set_value();
    });
    sending.get_future().wait();
    server_.reset();
    answering.join();
  }
}

/// Whoever comes while it ends is let in or not, and nothing is touched by two threads.
TEST_F(http_server_test, may_go_while_clients_come) {
  for (int round = 0; round < 20; ++round) {
    start({.threads = 2, .grace = 0ms});
    std::atomic<bool> over = false;
    std::promise<void> knocked;
    std::thread knocking([&, port = server_->port()] {
      for (int times = 0; !over; ++times) {
        const raw_client client(port);
        if (times == 10) knocked.set_value();
      }
    });
    knocked.get_future().wait();
    server_.reset();
    over = true;
    knocking.join();
  }
}

TEST_F(http_server_test, an_address_in_use_is_no_bad_input) {
  start();
  try {
    const http_server second({.port = server_->port()}, service_);
    FAIL() << "it listens";
  } catch (const input_error& error) {
    FAIL() << error.what() << ": it may be free the next time";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("the port is in use"), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::test
