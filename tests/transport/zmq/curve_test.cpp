#include "transport/zmq/curve.hpp"

#include <array>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/base/loopback.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"
#include "tests/transport/zmq/peer.hpp"
#include "transport/zmq/mechanism.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class curve : public testing::Test {
 protected:
  curve() { write_keys(folder_); }

  bus::options listening() const {
    auto options = peer::listening();
    options.keys = read_cluster_keys(folder_);
    return options;
  }
  static bus::options with(const curve_keys& keys) {
    bus::options options;
    options.keys = keys;
    return options;
  }
  void rewrite(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary | std::ios::trunc) << text;
  }
  std::string text_of(const std::string& name) const { return test::read_file(folder_ / name); }
  struct stat status_of(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::stat((folder_ / name).c_str(), &status), 0) << name;
    return status;
  }

  test::temp_folder own_;
  const fs::path folder_ = own_.path() / "keys";
};

TEST_F(curve, keys_are_files_of_their_owner_alone) {
  EXPECT_EQ(status_of("cluster.key").st_mode & 0777, 0600u);
  EXPECT_EQ(status_of("client.key").st_mode & 0777, 0600u);
  EXPECT_EQ(status_of("clients").st_mode & 0777, 0700u);
  const curve_keys node = read_cluster_keys(folder_), client = read_client_key(folder_ / "client.key");
  EXPECT_EQ(node.own.public_key, node.cluster_public_key);
  EXPECT_EQ(client.cluster_public_key, node.cluster_public_key);
  EXPECT_THAT(node.allowed, testing::ElementsAre(node.own.public_key));
  EXPECT_THAT(read_clients(node.clients), testing::ElementsAre(client.own.public_key));
}

TEST_F(curve, no_key_is_overwritten) {
  const std::string before = text_of("cluster.key");
  EXPECT_THAT([&] { write_keys(folder_); }, ThrowsMessage<input_error>(HasSubstr("never overwritten")));
  fs::remove(folder_ / "cluster.key");
  EXPECT_THROW(write_keys(folder_), input_error);
  EXPECT_FALSE(fs::exists(folder_ / "cluster.key"));
}

TEST_F(curve, a_full_disk_leaves_no_half_key_in_the_way_of_the_next_attempt) {
  const fs::path folder = folder_ / "others";
  {
    const test::full_disk full(10);
    EXPECT_THROW(write_keys(folder), std::runtime_error);
  }
  write_keys(folder);
  EXPECT_FALSE(read_cluster_keys(folder).own.public_key.empty());
}

TEST_F(curve, keys_that_cannot_all_be_written_are_not_in_the_way_of_the_next_attempt) {
  const fs::path folder = folder_ / "others";
  fs::create_directories(folder);
  std::ofstream(folder / "clients") << "no folder";
  EXPECT_THROW(write_keys(folder), input_error);
  fs::remove(folder / "clients");
  write_keys(folder);
  EXPECT_FALSE(read_cluster_keys(folder).own.public_key.empty());
}

TEST_F(curve, more_clients_have_keys_of_their_own) {
  add_client_key(folder_, "ann");
  EXPECT_EQ(read_clients(folder_ / "clients").size(), 2u);
  EXPECT_THAT([&] { add_client_key(folder_, "ann"); }, ThrowsMessage<input_error>(HasSubstr("ann.key: is there")));
  for (const char* name : {"", "../ann", "a b", "cluster", "a/b", "."})
    EXPECT_THROW(add_client_key(folder_, name), input_error) << name;
}

TEST_F(curve, a_clients_public_key_can_be_read_by_the_cluster_whoever_makes_it) {
  const mode_t before = ::umask(077);
  add_client_key(folder_, "ann");
  ::umask(before);
  EXPECT_EQ(status_of("clients/ann.pub").st_mode & 0777, 0644u);
  EXPECT_EQ(status_of("ann.key").st_mode & 0777, 0600u);
}

TEST_F(curve, a_folder_of_clients_that_root_makes_is_the_clusters) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes what is another's";
  constexpr uid_t nobody = 65534;
  if (::chown((folder_ / "cluster.key").c_str(), nobody, nobody) != 0) GTEST_SKIP() << "this container has one user";
  fs::remove_all(folder_ / "clients");
  add_client_key(folder_, "ann");
  EXPECT_EQ(status_of("clients").st_uid, nobody);
  EXPECT_EQ(status_of("ann.key").st_uid, 0u) << "the secret is root's, who hands it on";
}

TEST_F(curve, broken_key_files_are_refused_with_their_line) {
  const std::string right = text_of("client.key");
  const auto read = [&] { read_client_key(folder_ / "client.key"); };
  rewrite("client.key", "");
  EXPECT_THAT(read, ThrowsMessage<input_error>(HasSubstr("no line `public KEY`")));
  rewrite("client.key", right + "extra 1\n");
  EXPECT_THAT(read, ThrowsMessage<input_error>(HasSubstr("client.key:5")));
  rewrite("client.key", right.substr(0, right.size() - 5));
  EXPECT_THAT(read, ThrowsMessage<input_error>(HasSubstr("client.key:4")));
  rewrite("client.key", std::string(10'000, 'x'));
  EXPECT_THAT(read, ThrowsMessage<input_error>(HasSubstr("too long")));
  const curve_pair other = make_curve_pair();
  rewrite("client.key", fmt::format("public {}\nsecret {}\ncluster {}\n", other.public_key,
                                    make_curve_pair().secret_key, other.public_key));
  EXPECT_THAT(read, ThrowsMessage<input_error>(HasSubstr("does not belong")));
  EXPECT_THAT([&] { read_client_key(folder_ / "none.key"); },
              ThrowsMessage<input_error>(HasSubstr("copy it, or make")));
  EXPECT_THAT([&] { read_client_key(folder_); }, ThrowsMessage<input_error>(HasSubstr("such as client.key in it")));
}

TEST_F(curve, every_truncation_of_a_key_file_is_refused_or_complete) {
  const std::string right = text_of("client.key");
  for (std::size_t length = 0; length + 1 < right.size(); ++length) {
    rewrite("client.key", right.substr(0, length));
    EXPECT_THROW(read_client_key(folder_ / "client.key"), input_error) << length;
  }
}

TEST_F(curve, a_secret_that_others_can_read_is_refused) {
  fs::permissions(folder_ / "client.key", fs::perms(0644));
  EXPECT_THAT([&] { read_client_key(folder_ / "client.key"); }, ThrowsMessage<input_error>(HasSubstr("chmod 600")));
}

TEST_F(curve, keys_that_cannot_be_read_are_refused_with_what_to_do) {
  constexpr uid_t nobody = 65534;
  const bool is_root = ::geteuid() == 0;  // whom no permissions keep out
  fs::permissions(own_.path(), fs::perms(0711));
  fs::permissions(folder_, fs::perms(0711));
  fs::permissions(folder_ / "client.key", fs::perms(0000));
  fs::permissions(folder_ / "clients", fs::perms(0000));
  const auto become_nobody = [&] {
    return ::chown((folder_ / "cluster.key").c_str(), nobody, nobody) == 0 && ::seteuid(nobody) == 0;
  };
  if (is_root && !become_nobody()) GTEST_SKIP() << "this container has one user";
  const std::string file = test::refusal([&] { (void)read_client_key(folder_ / "client.key"); });
  const std::string below = test::refusal([&] { (void)read_client_key(folder_ / "clients" / "client.pub"); });
  const std::string listed = test::refusal([&] { (void)read_cluster_keys(folder_); });
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  fs::permissions(folder_ / "clients", fs::perms::owner_all);
  const std::string why =
      ": cannot be read: Permission denied: the user who runs this must be able to: see whose it is, its "
      "permissions and its folder's";
  EXPECT_EQ(file, (folder_ / "client.key").string() + why);
  EXPECT_EQ(below, (folder_ / "clients" / "client.pub").string() + why);
  EXPECT_EQ(listed, (folder_ / "clients").string() + why);
}

TEST_F(curve, a_clients_key_is_not_the_clusters) {
  fs::rename(folder_ / "client.key", folder_ / "cluster.key");
  EXPECT_THAT([&] { read_cluster_keys(folder_); }, ThrowsMessage<input_error>(HasSubstr("a client's key")));
}

TEST_F(curve, the_right_key_is_let_in_and_no_other) {
  peer listener(listening(), true);
  const curve_keys right = read_client_key(folder_ / "client.key");
  peer client(with(right)), node(with(read_cluster_keys(folder_)));
  const link_id link = client->connect(listener->endpoint());
  client->send(link, numbered_frame(1));
  ASSERT_TRUE(client.wait_frames(1));
  node->send(node->connect(listener->endpoint()), numbered_frame(1));
  ASSERT_TRUE(node.wait_frames(1));

  curve_keys unknown = right;
  unknown.own = make_curve_pair();
  peer stranger(with(unknown));
  stranger->connect(listener->endpoint());
  EXPECT_TRUE(stranger.was_told("refuses this process' key: a node needs the head's own cluster.key; a client's"));
  EXPECT_TRUE(listener.was_told("127.0.0.1: its key is not allowed"));

  peer keyless;
  keyless->connect(listener->endpoint());
  EXPECT_TRUE(keyless.was_told("one side uses keys and the other does not"));

  curve_keys elsewhere = right;
  elsewhere.cluster_public_key = make_curve_pair().public_key;
  peer misled(with(elsewhere));
  const link_id never = misled->connect(listener->endpoint());
  misled->send(never, numbered_frame(1));
  EXPECT_TRUE(listener.was_told("without the cluster's key"));

  for (std::uint64_t i = 2; i < 100; ++i) {
    client->send(link, numbered_frame(i, 10'000));
    ASSERT_TRUE(client.wait_frames(i));
  }
  EXPECT_TRUE(client.told().empty());
  EXPECT_TRUE(listener.wait_frames(100));
  EXPECT_EQ(listener.frames().size(), 100u);
}

TEST_F(curve, clients_keys_are_made_and_taken_away_while_a_bus_listens) {
  peer listener(listening(), true);
  add_client_key(folder_, "ann");
  const auto anns = with(read_client_key(folder_ / "ann.key"));
  peer ann(anns);
  ann->send(ann->connect(listener->endpoint()), numbered_frame(1));
  ASSERT_TRUE(ann.wait_frames(1));
  rewrite("clients/half.pub", "public ");
  fs::remove(folder_ / "clients" / "ann.pub");
  peer later(anns);
  later->connect(listener->endpoint());
  EXPECT_TRUE(later.was_told("refuses this process' key"));
}

TEST_F(curve, a_clients_key_that_is_replaced_in_place_is_let_in_no_more) {
  peer listener(listening(), true);
  add_client_key(folder_, "ann");
  const curve_keys before = read_client_key(folder_ / "ann.key");
  peer ann(with(before));
  ann->send(ann->connect(listener->endpoint()), numbered_frame(1));
  ASSERT_TRUE(ann.wait_frames(1));
  curve_keys after = before;
  after.own = make_curve_pair();
  rewrite("clients/ann.pub", "public " + after.own.public_key + "\n");
  peer later(with(before)), again(with(after));
  later->connect(listener->endpoint());
  EXPECT_TRUE(later.was_told("refuses this process' key"));
  again->send(again->connect(listener->endpoint()), numbered_frame(1));
  EXPECT_TRUE(again.wait_frames(1));
}

TEST_F(curve, clients_are_told_from_nodes_by_their_keys) {
  peer listener(listening(), true), open(peer::listening());
  peer client(with(read_client_key(folder_ / "client.key"))), node(with(read_cluster_keys(folder_))), keyless;
  client->send(client->connect(listener->endpoint()), numbered_frame(1));
  ASSERT_TRUE(listener.wait_frames(1));
  ASSERT_EQ(listener.frames().size(), 1u);
  node->send(node->connect(listener->endpoint()), numbered_frame(2));
  ASSERT_TRUE(listener.wait_frames(2));
  ASSERT_EQ(listener.frames().size(), 2u);
  EXPECT_TRUE(listener->is_client(listener.frames()[0].first));
  EXPECT_FALSE(listener->is_client(listener.frames()[1].first));
  keyless->send(keyless->connect(open->endpoint()), numbered_frame(1));
  ASSERT_TRUE(open.wait_frames(1));
  ASSERT_EQ(open.frames().size(), 1u);
  EXPECT_FALSE(open->is_client(open.frames()[0].first));
  EXPECT_FALSE(open->is_client(no_link));
}

TEST_F(curve, a_bus_with_keys_does_not_speak_to_one_without) {
  peer open(peer::listening()), client(with(read_client_key(folder_ / "client.key")));
  client->connect(open->endpoint());
  EXPECT_TRUE(client.was_told("one side uses keys"));
}

TEST_F(curve, a_listener_says_whether_it_has_keys) {
  peer open(peer::listening()), closed(listening());
  peer local(peer::listening("ipc://" + (folder_ / "socket").string()));
  EXPECT_EQ(detail::mechanism_at(open->endpoint()), "NULL");
  EXPECT_EQ(detail::mechanism_at(closed->endpoint()), "CURVE");
  EXPECT_EQ(detail::mechanism_at(local->endpoint()), "NULL");
  EXPECT_EQ(detail::mechanism_at("tcp://127.0.0.1:1"), "");
  EXPECT_EQ(detail::mechanism_at("tcp://no.such.host.invalid:7700"), "");
}

/// Whoever greets it is cut off at once, as by a listener of the other kind; but who asks what kind it is gets no
/// answer.
class slow_listener {
 public:
  slow_listener() {
    sockaddr_in own = test::loopback(0);
    socklen_t length = sizeof own;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&own), length), 0);
    EXPECT_EQ(::listen(socket_, 64), 0);
    const timeval long_enough{60, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &long_enough, sizeof long_enough);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &length);
    endpoint_ = "tcp://127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }
  ~slow_listener() { ::close(socket_); }
  slow_listener(const slow_listener&) = delete;
  slow_listener& operator=(const slow_listener&) = delete;

  const std::string& endpoint() const { return endpoint_; }
  /// The connection of the next process that asks for the mechanism. Others send ten bytes first, as libzmq does, and
  /// are cut off; a question begins with twelve.
  int next_question() const {
    for (;;) {
      const int one = ::accept(socket_, nullptr, nullptr);
      if (one < 0) return -1;
      const timeval shortly{0, 50'000};
      ::setsockopt(one, SOL_SOCKET, SO_RCVTIMEO, &shortly, sizeof shortly);
      std::array<char, 12> said{};
      if (::recv(one, said.data(), said.size(), MSG_WAITALL) == std::ssize(said)) return one;
      const linger with_a_reset{1, 0};
      ::setsockopt(one, SOL_SOCKET, SO_LINGER, &with_a_reset, sizeof with_a_reset);
      ::close(one);
    }
  }

 private:
  int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::string endpoint_;
};

/// Whether the other side closes within so many milliseconds.
bool ends_within(int connection, int milliseconds) {
  pollfd polled{connection, POLLIN, 0};
  return ::poll(&polled, 1, milliseconds) > 0;
}

TEST_F(curve, who_asks_for_keys_waits_a_fifth_of_a_second_in_all) {
  const slow_listener slow;
  std::thread asks([&] { EXPECT_EQ(detail::mechanism_at(slow.endpoint()), ""); });
  const int question = slow.next_question();
  int sent = 0;
  while (sent < 32 && !ends_within(question, 50) && ::send(question, "\xff", 1, MSG_NOSIGNAL) == 1) ++sent;
  EXPECT_LT(sent, 32) << "no matter that something comes all the time";
  asks.join();
  ::close(question);
}

TEST_F(curve, nobody_waits_while_a_bus_asks_for_keys) {
  const slow_listener slow;
  peer dialing;
  bool is_free = false;
  for (int i = 0; i < 8 && !is_free; ++i) {  // on a busy machine an answer may come late
    dialing->connect(slow.endpoint());
    const int question = slow.next_question();
    ASSERT_GE(question, 0);
    EXPECT_FALSE(dialing->is_client(no_link));
    is_free = !ends_within(question, 0);
    ::close(question);
  }
  EXPECT_TRUE(is_free);
}

TEST_F(curve, a_bus_hears_others_while_it_asks_for_keys) {
  const slow_listener slow;
  peer dialing(peer::listening()), other;
  const link_id to = other->connect(dialing->endpoint());
  bool was_heard = false;
  for (std::size_t i = 0; i < 8 && !was_heard; ++i) {  // on a busy machine an answer may come late
    dialing->connect(slow.endpoint());
    const int question = slow.next_question();
    ASSERT_GE(question, 0);
    other->send(to, numbered_frame(i));
    ASSERT_TRUE(dialing.wait_frames(i + 1));
    was_heard = !ends_within(question, 0);
    ::close(question);
  }
  EXPECT_TRUE(was_heard);
}

TEST_F(curve, with_keys_a_bus_listens_beyond_loopback_but_not_to_nobody) {
  auto options = listening();
  options.listen = "tcp://0.0.0.0:0";
  EXPECT_NO_THROW(peer open(options));
  options.keys->allowed.clear();
  EXPECT_THAT([&] { peer open(options); }, ThrowsMessage<input_error>(HasSubstr("no key is allowed")));
}

}  // namespace
}  // namespace troupe
