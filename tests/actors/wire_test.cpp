#include "actors/wire.hpp"

#include "tests/actors/support.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

bus::options listening(std::uint64_t most_bytes) {
  bus::options options = peer::listening();
  options.limits.body_bytes = most_bytes;
  return options;
}

end_node farewell(std::size_t bytes) {
  return {incarnation_id(1), std::string(bytes, 'a')};
}

/// A link is lost by a message that is longer than a frame, as if it were read too slowly. The sender lives on.
TEST(wire, gives_a_link_up_that_would_be_told_more_than_a_frame_holds) {
  constexpr std::size_t most = 1000;
  inbox heard;
  wire links(listening(most));
  links.on<leave_cluster>([&](incoming<leave_cluster> in) { heard.put(in.link); });
  links.on_lost([&](link_id link, const link_end& end) { heard.put(std::pair(link, end.why)); });
  links.start();
  peer other;
  const link_id to_wire = other->connect(links.endpoint());
  other->send(to_wire, to_frame(leave_cluster{incarnation_id(1)}));
  const auto link = heard.take<link_id>();
  links.send(link, farewell(most / 2));
  ASSERT_TRUE(other.wait_frames(1));
  EXPECT_NO_THROW(links.send(link, farewell(most)));
  const auto lost = heard.take<std::pair<link_id, std::string>>();
  EXPECT_EQ(lost.first, link);
  EXPECT_NE(lost.second.find("longer than"), std::string::npos) << lost.second;
  EXPECT_TRUE(other.wait_closed());
  EXPECT_NO_THROW(links.send(link, farewell(1)));
}

TEST(wire, gives_a_link_up_that_is_read_too_slowly) {
  inbox heard;
  bus::options options;
  options.queue_bytes = 1000;
  wire links(options);
  links.on_lost([&](link_id link, const link_end& end) { heard.put(std::pair(link, end.why)); });
  links.start();
  const link_id nobody = links.connect(nobodys_address());
  links.send(nobody, farewell(600));
  EXPECT_EQ((heard.count<std::pair<link_id, std::string>>()), 0u);
  links.send(nobody, farewell(600));
  EXPECT_EQ((heard.take<std::pair<link_id, std::string>>()), std::pair(nobody, std::string("reads too slowly")));
}

TEST(wire, says_that_it_closes_a_link_for_a_message_that_it_cannot_read) {
  inbox heard;
  wire links(listening(1000));
  links.on<leave_cluster>([&](incoming<leave_cluster>) { ADD_FAILURE() << "it was no such message"; });
  links.on_lost([&](link_id link, const link_end& end) { heard.put(std::pair(link, end.why)); });
  links.start();
  peer other;
  frame longer = to_frame(leave_cluster{incarnation_id(1)});
  longer.body.push_back(std::byte{1});
  other->send(other->connect(links.endpoint()), longer);
  const auto logged = heard.take<std::pair<link_id, std::string>>(),
             lost = heard.take<std::pair<link_id, std::string>>();
  EXPECT_EQ(logged.first, no_link);
  EXPECT_NE(logged.second.find("(kind 5)"), std::string::npos) << logged.second;
  EXPECT_NE(lost.first, no_link);
  EXPECT_TRUE(other.wait_closed());
}

/// Frames may come as soon as the port is open. The first one is answered too.
TEST(wire, answers_what_comes_while_it_starts) {
  temp_folder folder;
  bus::options options;
  options.listen = "ipc://" + (folder.path() / "s").string();
  peer other;
  for (std::size_t i = 1; i <= 8; ++i) {
    const link_id to_wire = other->connect(options.listen);
    other->send(to_wire, to_frame(leave_cluster{incarnation_id(1)}));
    {
      wire links(options);
      links.on<leave_cluster>([&](const incoming<leave_cluster>& in) { links.send(in.link, farewell(1)); });
      links.start();
      EXPECT_TRUE(other.wait_frames(i));
    }
    other->close(to_wire);
  }
}

}  // namespace
}  // namespace troupe::test
