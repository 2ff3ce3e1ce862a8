#include "actors/requests/waiting_requests.hpp"

#include <gmock/gmock.h>

namespace troupe::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

begin_request wanting(std::uint64_t id, const std::string& adapter) {
  begin_request request;
  request.id = request_id(id);
  request.adapter = adapter;
  return request;
}

constexpr instant second(int count) {
  return {std::chrono::seconds(count)};
}

std::vector<std::uint64_t> ids_of(const std::vector<begin_request>& requests) {
  std::vector<std::uint64_t> ids;
  for (const begin_request& each : requests) ids.push_back(each.id.value);
  return ids;
}

/// Three, of which two wait for the same adapter.
waiting_requests three_waiting() {
  waiting_requests waiting;
  EXPECT_TRUE(waiting.add(wanting(1, "a"), second(1), second(11)));
  EXPECT_FALSE(waiting.add(wanting(2, "a"), second(2), second(12)));
  EXPECT_TRUE(waiting.add(wanting(3, "b"), second(3), second(13)));
  return waiting;
}

TEST(waiting_requests, are_taken_by_adapter_in_the_order_in_which_they_came) {
  waiting_requests waiting = three_waiting();
  EXPECT_EQ(waiting.size(), 3u);
  const auto taken = waiting.take("a");
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].request.id, request_id(1));
  EXPECT_EQ(taken[1].request.id, request_id(2));
  EXPECT_EQ(taken[1].since, second(2));
  EXPECT_THAT(waiting.take("a"), IsEmpty());
  EXPECT_EQ(waiting.size(), 1u);
  EXPECT_TRUE(waiting.add(wanting(4, "a"), second(4), second(14))) << "the adapter is looked for anew";
}

TEST(waiting_requests, are_overdue_one_by_one) {
  waiting_requests waiting = three_waiting();
  EXPECT_THAT(waiting.take_overdue(second(10)), IsEmpty());
  EXPECT_THAT(ids_of(waiting.take_overdue(second(11))), ElementsAre(1u));
  EXPECT_FALSE(waiting.add(wanting(4, "a"), second(11), second(21))) << "one waits yet";
  EXPECT_THAT(ids_of(waiting.take_overdue(second(13))), UnorderedElementsAre(2u, 3u));
  EXPECT_THAT(ids_of(waiting.take_all()), ElementsAre(4u));
  EXPECT_EQ(waiting.size(), 0u);
}

TEST(waiting_requests, that_nobody_wants_any_more_leave_the_others) {
  waiting_requests waiting = three_waiting();
  EXPECT_EQ(waiting.remove(request_id(3)), 1u);
  EXPECT_EQ(waiting.remove(request_id(3)), 0u);
  EXPECT_TRUE(waiting.add(wanting(4, "b"), second(4), second(14))) << "nobody waits for it";
  EXPECT_EQ(waiting.remove(request_id(1)), 1u);
  EXPECT_THAT(ids_of(waiting.take_all()), UnorderedElementsAre(2u, 4u));
}

}  // namespace
}  // namespace troupe::test
