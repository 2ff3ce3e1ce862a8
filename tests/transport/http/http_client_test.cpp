#include "transport/http/http_client.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>

#include "base/error.hpp"
#include "tests/base/sanitized.hpp"
#include "tests/transport/http/handling.hpp"
#include "transport/http/http_server.hpp"

namespace troupe::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Answers the first request of each connection, and closes it without having said so.
class closing_server {
 public:
  closing_server(int connections, std::string answer)
      : answer_(std::move(answer)), thread_([this, connections] { serve(connections); }) {}
  ~closing_server() { thread_.join(); }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()); }

 private:
  void serve(int connections) {
    for (int i = 0; i < connections; ++i) {
      tcp::socket socket(context_);
      acceptor_.accept(socket);
      asio::streambuf request;
      asio::read_until(socket, request, "\r\n\r\n");
      asio::write(socket, asio::buffer(answer_));
    }
  }

  asio::io_context context_;
  tcp::acceptor acceptor_{context_, {asio::ip::address_v4::loopback(), 0}};
  std::string answer_;
  std::thread thread_;
};

TEST(http_client, sends_again_what_an_idle_connection_did_not_answer) {
  constexpr int requests = 3;
  const closing_server server(requests, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
  http_client client(parse_http_url(server.url()));
  std::string bodies, problems;
  int sent = 0;
  std::function<void()> send = [&] {
    ++sent;
    client.send("GET", "/", {}, {},
                {.on_data = [&](std::string_view piece) { bodies += piece; },
                 .on_end =
                     [&](const std::string& error) {
                       problems += error;
                       if (sent < requests) send();
                     }});
  };
  send();
  client.run();
  EXPECT_EQ(problems, "");
  EXPECT_EQ(bodies, "okokok");
}

TEST(http_client, tells_that_a_new_connection_was_closed_without_an_answer) {
  const closing_server server(1, "");
  http_client client(parse_http_url(server.url()));
  std::string problem;
  client.send("GET", "/", {}, {}, {.on_end = [&](const std::string& error) { problem = error; }});
  client.run();
  EXPECT_NE(problem, "");
}

TEST(http_client, says_that_no_more_files_can_be_opened) {
  if (sanitized) GTEST_SKIP() << "the sanitizer needs files of its own";
  http_client client(parse_http_url("http://127.0.0.1:1"));
  client.after(0, [] {});
  client.run();  // it has opened what it needs besides
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  std::string problem;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  client.send("GET", "/", {}, {}, {.on_end = [&](const std::string& error) { problem = error; }});
  client.run();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(problem, "Too many open files: raise `ulimit -Hn`");
}

TEST(http_url, is_read_or_refused) {
  EXPECT_EQ(parse_http_url("http://a:81/v1/").path, "/v1");
  EXPECT_EQ(parse_http_url("http://[::1]:81").host, "::1");
  EXPECT_EQ(parse_http_url("http://a").port, 80);
  for (const char* bad : {"https://a", "a:80", "http://", "http://a:b", "http://a:70000", "http://::1:81"})
    EXPECT_THROW(parse_http_url(bad), input_error) << bad;
}

void tell_host(http_request&& request, const std::shared_ptr<http_exchange>& exchange) {
  exchange->reply({.body = std::string(request.header("host"))});
}

std::string answer_of(const std::string& authority) {
  http_client client(parse_http_url("http://" + authority));
  std::string answer;
  client.send("GET", "/", {}, {}, {.on_data = [&](std::string_view piece) { answer += piece; }});
  client.run();
  return answer;
}

TEST(http_client, writes_an_address_of_ipv6_in_brackets) {
  handling told(tell_host);
  std::optional<http_server> server;
  try {
    server.emplace(http_options{.host = "::1"}, told);
  } catch (const input_error&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  server->start();
  const std::string authority = "[::1]:" + std::to_string(server->port());
  EXPECT_EQ(answer_of(authority), authority);
}

TEST(http_client, reaches_a_server_at_every_address_by_both_kinds) {
  handling told(tell_host);
  http_server server({.host = "*"}, told);
  server.start();
  const std::string port = ":" + std::to_string(server.port());
  EXPECT_EQ(answer_of("127.0.0.1" + port), "127.0.0.1" + port);
  try {
    check_http_address({.host = "::1"});
  } catch (const input_error&) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  EXPECT_EQ(answer_of("[::1]" + port), "[::1]" + port);
}

}  // namespace
}  // namespace troupe::test
