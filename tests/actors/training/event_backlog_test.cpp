#include "actors/training/event_backlog.hpp"

#include <gmock/gmock.h>

#include "cluster/journal/job.hpp"

namespace troupe::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts_of(const std::vector<noted_event>& events) {
  std::vector<std::string> texts;
  for (const noted_event& each : events) texts.push_back(each.text);
  return texts;
}

TEST(event_backlog, is_written_in_one_transaction_at_a_time) {
  event_backlog backlog;
  EXPECT_THAT(backlog.begin_writing(), IsEmpty());
  backlog.note(message_event, "1");
  EXPECT_THAT(texts_of(backlog.begin_writing()), ElementsAre("1")) << "none were being written";
  backlog.note(metrics_event, "2");
  backlog.note(message_event, "3");
  EXPECT_THAT(backlog.begin_writing(), IsEmpty()) << "earlier ones are being written";
  backlog.written();
  EXPECT_THAT(texts_of(backlog.begin_writing()), ElementsAre("2", "3"));
  backlog.written();
  EXPECT_THAT(backlog.begin_writing(), IsEmpty());
}

TEST(event_backlog, drops_points_of_the_loss_curve_first_where_too_many_wait) {
  event_backlog backlog;
  backlog.note(message_event, "first");
  backlog.note(metrics_event, "point");
  for (int i = 2; i < 300; ++i) backlog.note(message_event, "message");
  backlog.note(checkpoint_event, "checkpoint");
  backlog.note(message_event, "last");
  const auto events = backlog.begin_writing();
  ASSERT_EQ(events.size(), 300u);
  EXPECT_EQ(events.front().text, "message") << "the point went, and then, without any more of these, what was oldest";
  EXPECT_EQ(events[298].kind, checkpoint_event);
  EXPECT_EQ(events.back().text, "last");
}

TEST(event_backlog, ends_with_a_message_whatever_is_being_written) {
  event_backlog backlog;
  backlog.note(metrics_event, "1");
  EXPECT_THAT(texts_of(backlog.begin_writing()), ElementsAre("1"));
  backlog.note(metrics_event, "2");
  const auto last = backlog.take_with("it is over");
  EXPECT_THAT(texts_of(last), ElementsAre("2", "it is over"));
  EXPECT_EQ(last.back().kind, message_event);
  EXPECT_THAT(texts_of(backlog.take_with("again")), ElementsAre("again"));
}

}  // namespace
}  // namespace troupe::test
