// How answers and streams reach clients: those that read, those that are slow, and those that go.
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "tests/base/soon.hpp"
#include "tests/transport/http/handling.hpp"
#include "tests/transport/http/http_server_fixture.hpp"
#include "tests/transport/http/raw_client.hpp"
#include "transport/http/http_client.hpp"

namespace troupe::test {
namespace {

using namespace std::chrono_literals;

class http_answers_test : public http_server_test {};

TEST_F(http_answers_test, streams_in_chunks) {
  start();
  raw_client client(server_->port());
  client.say(get("/later"));
  const auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/event-stream"});
  EXPECT_TRUE(exchange->send("data: 1\n\n"));
  EXPECT_NE(client.hear_until("9\r\ndata: 1\n\n\r\n").find("transfer-encoding: chunked"), std::string::npos);
  EXPECT_TRUE(exchange->send("data: 2\n\n"));
  exchange->end_stream();
  EXPECT_EQ(client.hear_until("0\r\n\r\n"), "9\r\ndata: 2\n\n\r\n0\r\n\r\n");
  EXPECT_FALSE(exchange->send("late"));
  client.say(get("/next"));
  EXPECT_TRUE(client.hear_response().ends_with("GET /next "));
}

TEST_F(http_answers_test, streams_to_old_clients_without_chunks_and_closes) {
  start();
  raw_client client(server_->port());
  client.say("GET /later HTTP/1.0\r\n\r\n");
  const auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/event-stream"});
  exchange->send("data: 1\n\n");
  exchange->end_stream();
  const std::string all = client.hear_all();
  EXPECT_TRUE(all.ends_with("\r\n\r\ndata: 1\n\n")) << all;
  EXPECT_EQ(all.find("chunked"), all.npos);
}

TEST_F(http_answers_test, cuts_off_a_stream_that_nobody_ends) {
  start();
  raw_client client(server_->port());
  client.say(get("/later"));
  auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/event-stream"});
  exchange->send("data: 1\n\n");
  exchange.reset();
  const std::string all = client.hear_all();
  EXPECT_NE(all.find("data: 1"), all.npos);
  EXPECT_FALSE(all.ends_with("0\r\n\r\n")) << "the client must see that this is not the end";
  EXPECT_TRUE(client.was_closed());
}

TEST_F(http_answers_test, ends_a_stream_at_no_piece_without_a_byte) {
  start();
  raw_client client(server_->port());
  client.say(get("/later"));
  const auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/event-stream"});
  EXPECT_TRUE(exchange->send(""));
  EXPECT_TRUE(exchange->send("more"));
  exchange->end_stream();
  EXPECT_TRUE(client.hear_until("0\r\n\r\n").ends_with("\r\n\r\n4\r\nmore\r\n0\r\n\r\n"));
}

TEST_F(http_answers_test, sends_no_body_to_whom_the_head_is_enough) {
  start();
  raw_client client(server_->port());
  const std::string head = "HEAD /x HTTP/1.1\r\nhost: x\r\n\r\n";
  client.say(head + "HEAD /later HTTP/1.1\r\nhost: x\r\n\r\n" + get("/next"));
  EXPECT_NE(client.hear_until("\r\n\r\n").find("content-length: 8\r\n"), std::string::npos);
  const auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/event-stream"});
  exchange->send("data: 1\n\n");
  exchange->end_stream();
  EXPECT_TRUE(client.hear_until("\r\n\r\n").starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_TRUE(client.hear_response().starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(http_answers_test, says_nothing_behind_the_end_of_an_answer) {
  start();
  raw_client client(server_->port());
  client.say(get("/later") + get("/next"));
  const auto exchange = next_kept();
  exchange->reply({.content_type = "text/plain", .body = "first"});
  exchange->reply({.content_type = "text/plain", .body = "second"});
  exchange->end_stream();
  EXPECT_TRUE(client.hear_response().ends_with("first"));
  const std::string next = client.hear_response();
  EXPECT_TRUE(next.starts_with("HTTP/1.1 200 OK\r\n") && next.ends_with("GET /next ")) << next;
}

TEST_F(http_answers_test, says_at_once_that_all_has_gone_where_nothing_is_left) {
  start();
  raw_client client(server_->port());
  client.say(get("/later"));
  const auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/plain"});
  for (int i = 0; i < 2; ++i) {
    exchange->send("piece");
    client.hear_until("piece\r\n");
    std::promise<void> sent;
    exchange->on_sent([&] { sent.set_value(); });
    ASSERT_EQ(sent.get_future().wait_for(10s), std::future_status::ready);
  }
}

TEST_F(http_answers_test, serves_hundreds_of_streams_to_one_client) {
  start({.threads = 2});
  http_client client(parse_http_url("http://127.0.0.1:" + std::to_string(server_->port())));
  int complete = 0;
  std::string first;
  for (int i = 0; i < 300; ++i)
    client.send("GET", "/later", {}, {}, {.on_end = [&](const std::string& error) { complete += error.empty(); }});
  std::thread answering([&] {
    std::vector<std::shared_ptr<http_exchange>> all;
    for (int i = 0; i < 300; ++i) all.push_back(next_kept());
    for (const auto& each : all) each->begin_stream({.content_type = "text/event-stream"});
    for (int step = 0; step < 20; ++step)
      for (const auto& each : all) EXPECT_TRUE(each->send("data: {}\n\n"));
    for (const auto& each : all) each->end_stream();
  });
  client.run();
  answering.join();
  EXPECT_EQ(complete, 300);
}

TEST_F(http_answers_test, tells_when_a_client_has_gone) {
  start();
  auto client = std::make_unique<raw_client>(server_->port());
  client->say(get("/later"));
  const auto exchange = next_kept();
  exchange->on_gone([this] { note_gone(); });
  EXPECT_FALSE(exchange->is_gone());
  client.reset();
  EXPECT_TRUE(is_gone_soon());
  EXPECT_TRUE(exchange->is_gone());
  EXPECT_FALSE(exchange->send("more"));
  bool at_once = false;
  exchange->on_gone([&] { at_once = true; });
  EXPECT_TRUE(at_once);
}

TEST_F(http_answers_test, drops_a_client_that_does_not_read) {
  start({.stream_backlog = 64 << 10});
  raw_client client(server_->port(), 4096);
  client.say(get("/later"));
  const auto exchange = next_kept();
  exchange->on_gone([this] { note_gone(); });
  exchange->begin_stream({.content_type = "text/event-stream"});
  const std::string piece(16 << 10, 'x');
  int sent = 0;
  while (sent < 10'000 && exchange->send(piece)) ++sent;
  EXPECT_LT(sent, 10'000);
  EXPECT_TRUE(is_gone_soon());
}

/// As long as the handler has the server's thread, nothing can be written: that is no fault of the client's.
TEST_F(http_answers_test, keeps_a_client_for_which_much_came_before_anything_could_be_written) {
  handling streams([](http_request&&, const std::shared_ptr<http_exchange>& exchange) {
    exchange->begin_stream({.content_type = "text/event-stream"});
    const std::string piece(4 << 10, 'x');
    for (int i = 0; i < 512; ++i) EXPECT_TRUE(exchange->send(piece));
    exchange->end_stream();
  });
  http_server server({}, streams);
  server.start();
  raw_client client(server.port());
  client.say(get("/", "connection: close\r\n"));
  EXPECT_GT(client.hear_all().size(), 2u << 20);
}

/// A first piece may be long, and others come before the server's thread has taken it.
TEST_F(http_answers_test, keeps_a_client_for_which_a_long_piece_waits_to_be_written) {
  handling streams([](http_request&&, const std::shared_ptr<http_exchange>& exchange) {
    exchange->begin_stream({.content_type = "text/event-stream"});
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(exchange->send(std::string(1 << 20, 'x')));
    exchange->end_stream();
  });
  http_server server({.stream_backlog = 64 << 10}, streams);
  server.start();
  raw_client client(server.port());
  client.say(get("/", "connection: close\r\n"));
  EXPECT_GT(client.hear_all().size(), 4u << 20);
}

TEST_F(http_answers_test, bounds_what_all_answers_hold_that_nobody_reads) {
  start({.answers_bytes = 40 << 20});
  const http_response big{.content_type = "text/plain", .body = std::string(16 << 20, 'x')};
  raw_client slow(server_->port(), 4096), other(server_->port());
  slow.say(get("/later"));
  next_kept()->reply(big);
  other.say(get("/later"));
  next_kept()->reply(big);
  EXPECT_EQ(status_of(other.hear_response()), 503) << "of the same address: it has half of the room";
  raw_client elsewhere(server_->port(), 4096, 10s, 2), too_many(server_->port(), 4096, 10s, 3);
  elsewhere.say(get("/later"));
  next_kept()->reply(big);
  EXPECT_EQ(status_of(elsewhere.hear_until("\r\n\r\n")), 200);
  too_many.say(get("/later"));
  next_kept()->reply(big);
  const std::string refused = too_many.hear_response();
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_NE(refused.find("\r\nretry-after: 1\r\n"), std::string::npos);
  EXPECT_NE(refused.find("\r\nretry-after-ms: 1000\r\n"), std::string::npos);
  other.say(get("/small"));
  EXPECT_EQ(status_of(other.hear_response()), 200);
  EXPECT_TRUE(slow.hear_response().ends_with("xxx"));
  slow.say(get("/small"));
  EXPECT_EQ(status_of(slow.hear_response()), 200);
  other.say(get("/later"));
  next_kept()->reply(big);
  EXPECT_EQ(status_of(other.hear_until("\r\n\r\n")), 200);
}

TEST_F(http_answers_test, has_room_again_for_what_a_client_that_went_has_not_read) {
  start({.answers_bytes = 40 << 20});
  const http_response big{.content_type = "text/plain", .body = std::string(16 << 20, 'x')};
  raw_client slow(server_->port(), 4096), other(server_->port());
  slow.say(get("/later"));
  {
    const auto exchange = next_kept();
    exchange->on_gone([this] { note_gone(); });
    exchange->reply(big);
  }
  slow.close();
  ASSERT_TRUE(is_gone_soon());
  other.say(get("/later"));
  next_kept()->reply(big);
  EXPECT_EQ(status_of(other.hear_until("\r\n\r\n")), 200);
}

TEST_F(http_answers_test, bounds_what_all_streams_hold_that_nobody_reads) {
  start({.answers_bytes = 40 << 20});
  const std::string piece(16 << 20, 'x');
  raw_client slow(server_->port(), 4096), other(server_->port());
  slow.say(get("/later", "connection: close\r\n"));
  const auto first = next_kept();
  first->begin_stream({.content_type = "text/plain"});
  std::promise<void> sent;
  EXPECT_TRUE(first->send(piece));
  first->on_sent([&] { sent.set_value(); });
  other.say(get("/later"));
  const auto second = next_kept();
  second->begin_stream({.content_type = "text/plain"});
  EXPECT_TRUE(second->send("short"));
  EXPECT_FALSE(second->send(piece));
  auto rest = std::async(std::launch::async, [&] { return slow.hear_all(); });
  ASSERT_EQ(sent.get_future().wait_for(10s), std::future_status::ready);
  EXPECT_TRUE(first->send(piece)) << "the one before has gone";
  first->end_stream();
  EXPECT_GT(rest.get().size(), 32u << 20);
}

/// Whatever one stream may hold.
TEST_F(http_answers_test, counts_all_that_a_stream_holds_however_short_its_pieces_are) {
  start({.stream_backlog = std::size_t{1} << 30, .answers_bytes = 4 << 20});
  const std::string piece(16 << 10, 'x');
  raw_client slow(server_->port(), 4096), other(server_->port());
  slow.say(get("/later"));
  const auto first = next_kept();
  first->on_gone([this] { note_gone(); });
  first->begin_stream({.content_type = "text/plain"});
  int sent = 0;
  while (sent < 10'000 && first->send(piece)) ++sent;
  EXPECT_GE(sent, 4) << "so much always finds room";
  EXPECT_LT(sent, 10'000);
  EXPECT_TRUE(is_gone_soon());
  other.say(get("/later"));
  const auto second = next_kept();
  second->begin_stream({.content_type = "text/plain"});
  EXPECT_TRUE(second->send(std::string(1 << 20, 'x'))) << "there is room again";
}

TEST_F(http_answers_test, takes_a_piece_of_any_length_and_says_when_it_has_gone) {
  start({.stream_backlog = 64 << 10});
  raw_client client(server_->port());
  client.say(get("/later", "connection: close\r\n"));
  const auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/plain"});
  std::promise<void> sent;
  EXPECT_TRUE(exchange->send(std::string(32 << 20, 'x')));
  exchange->on_sent([&] { sent.set_value(); });
  auto has_gone = sent.get_future();
  client.hear_until("xxx");
  EXPECT_EQ(has_gone.wait_for(0s), std::future_status::timeout) << "the client has not read it";
  auto rest = std::async(std::launch::async, [&] { return client.hear_all(); });
  ASSERT_EQ(has_gone.wait_for(10s), std::future_status::ready);
  exchange->end_stream();
  EXPECT_GT(rest.get().size(), 31u << 20);
}

TEST_F(http_answers_test, lets_go_who_waits_for_a_client_that_has_gone) {
  start();
  std::optional<raw_client> client(std::in_place, server_->port(), 4096);
  client->say(get("/later"));
  auto exchange = next_kept();
  exchange->begin_stream({.content_type = "text/plain"});
  EXPECT_TRUE(exchange->send(std::string(32 << 20, 'x')));
  std::weak_ptr<http_exchange> still_there = exchange;
  exchange->on_sent([exchange] { ADD_FAILURE() << "it cannot have gone"; });
  exchange->on_gone([this] { note_gone(); });
  exchange = nullptr;
  client.reset();
  ASSERT_TRUE(is_gone_soon());
  EXPECT_TRUE(is_soon([&] { return still_there.expired(); }));
}

TEST_F(http_answers_test, lets_go_of_an_answered_exchange_that_its_own_listener_holds) {
  start();
  raw_client client(server_->port());
  client.say(get("/later"));
  {
    const auto exchange = next_kept();
    exchange->on_gone([exchange] { ADD_FAILURE() << "the client is there"; });
    exchange->reply({.content_type = "text/plain", .body = "ok"});
  }
  EXPECT_TRUE(client.hear_response().ends_with("ok"));
  client.say(get("/next"));
  EXPECT_TRUE(client.hear_response().ends_with("GET /next "));
}

}  // namespace
}  // namespace troupe::test
