#include "model/engine/scheduling/adapter_residency.hpp"
#include "base/to_size.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "model/engine/scheduling/batch_scheduler.hpp"
#include "tests/base/sanitized.hpp"

namespace troupe {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

adapter_version version(int number) {
  return adapter_version(static_cast<std::uint32_t>(number));
}

/// Adapters of one byte each where nothing else is said, loaded as soon as that is asked for.
struct residents {
  explicit residents(adapter_residency::options options) : residency(options) {}

  void declare(int count, std::int64_t bytes = 1) {
    for (int i = 1; i <= count; ++i) EXPECT_FALSE(residency.declare(version(i), bytes));
  }
  bool ask(int number) { return residency.is_ready(version(number)); }
  adapter_residency::moves turn() {
    const auto moves = residency.turn([&](adapter_version v) { return pinned.contains(static_cast<int>(v.value)); },
                                      [&](adapter_version v) { return !given_up.contains(static_cast<int>(v.value)); });
    for (const adapter_version v : moves.load) residency.loaded(v);
    return moves;
  }
  void bring(int number) {
    ask(number);
    turn();
  }
  /// It starts and ends a sequence.
  void use(int number) {
    EXPECT_TRUE(ask(number));
    pinned.insert(number);
    turn();
    pinned.erase(number);
    turn();
  }

  adapter_residency residency;
  std::set<int> pinned, given_up;
};

TEST(adapter_residency, names_those_that_are_here) {
  residents r({.bytes = 2});
  r.declare(3);
  EXPECT_THAT(r.residency.residents(), IsEmpty());
  r.bring(3);
  r.bring(1);
  EXPECT_THAT(r.residency.residents(), ElementsAre(version(3), version(1)));
}

TEST(adapter_residency, loads_what_is_asked_for_in_the_order_of_asking) {
  residents r({.bytes = 3});
  r.declare(3);
  EXPECT_FALSE(r.ask(3));
  EXPECT_FALSE(r.ask(1));
  EXPECT_FALSE(r.ask(3));
  EXPECT_THAT(r.turn().load, ElementsAre(version(3), version(1)));
  EXPECT_TRUE(r.ask(3));
  EXPECT_FALSE(r.ask(2));
}

TEST(adapter_residency, an_adapter_larger_than_the_budget_is_refused_when_declared) {
  adapter_residency residency({.bytes = 100});
  const auto refused = residency.declare(version(1), 101);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->bytes, 101);
  EXPECT_EQ(refused->budget, 100);
  EXPECT_FALSE(residency.is_declared(version(1)));
  EXPECT_FALSE(residency.is_ready(version(1)));
  EXPECT_FALSE(residency.declare(version(1), 100));
}

TEST(adapter_residency, the_least_recently_used_goes) {
  residents r({.bytes = 2});
  r.declare(3);
  r.bring(1);
  r.bring(2);
  r.use(2);
  r.use(1);
  r.turn();
  r.ask(3);
  const auto moves = r.turn();
  EXPECT_THAT(moves.drop, ElementsAre(version(2)));
  EXPECT_THAT(moves.load, ElementsAre(version(3)));
}

TEST(adapter_residency, nobody_waits_for_one_that_is_not_wanted_any_more) {
  residents r({.bytes = 2});
  r.declare(3);
  r.declare(2, 2);
  r.bring(3);
  r.pinned = {3};
  r.ask(2);
  r.turn();
  r.given_up = {2};
  r.ask(1);
  const auto moves = r.turn();
  EXPECT_FALSE(r.residency.is_ready(version(1)));
  EXPECT_EQ(r.residency.stats().waiting, 1u) << "version 1 alone";
  r.given_up.clear();
  r.ask(2);
  r.turn();
  EXPECT_EQ(r.residency.stats().waiting, 2u) << "and it may be asked for again";
}

TEST(adapter_residency, what_runs_stays) {
  residents r({.bytes = 1, .patience = 4});
  r.declare(2);
  r.bring(1);
  r.pinned = {1};
  for (int i = 0; i < 50; ++i) {
    r.ask(2);
    EXPECT_THAT(r.turn().drop, IsEmpty());
  }
  r.pinned.clear();
  EXPECT_THAT(r.turn().load, ElementsAre(version(2)));
}

TEST(adapter_residency, what_has_just_come_stays_until_it_has_run_but_not_for_ever) {
  residents r({.bytes = 1, .patience = 8});
  r.declare(2);
  r.bring(1);
  r.ask(2);
  for (int i = 0; i < 7; ++i) EXPECT_THAT(r.turn().drop, IsEmpty()) << i;
  EXPECT_THAT(r.turn().drop, ElementsAre(version(1)));
  r.use(2);
  r.ask(1);
  r.turn();
  EXPECT_THAT(r.residency.residents(), ElementsAre(version(1)));
}

TEST(adapter_residency, where_everything_runs_the_overdue_closes_the_least_recently_used) {
  residents r({.bytes = 2, .patience = 5});
  r.declare(3);
  r.bring(1);
  r.bring(2);
  r.pinned = {1, 2};
  r.ask(2);
  r.ask(3);
  for (int i = 0; i < 4; ++i) {
    r.turn();
    EXPECT_TRUE(r.ask(1) && r.ask(2)) << "others start beside it while there is patience";
  }
  r.turn();
  EXPECT_FALSE(r.ask(1)) << "closed";
  EXPECT_TRUE(r.ask(2));
  r.turn();
  EXPECT_FALSE(r.ask(1)) << "still closed";
  EXPECT_THAT(r.residency.residents(), Contains(version(1))) << "it runs to the end";
  r.pinned = {2};
  EXPECT_THAT(r.turn().load, ElementsAre(version(3)));
  EXPECT_FALSE(r.ask(1)) << "gone";
  EXPECT_EQ(r.residency.stats().waiting, 1u);
}

TEST(adapter_residency, small_ones_do_not_slip_past_a_large_one) {
  residents r({.bytes = 4, .patience = 2});
  EXPECT_FALSE(r.residency.declare(version(1), 2));
  EXPECT_FALSE(r.residency.declare(version(2), 2));
  EXPECT_FALSE(r.residency.declare(version(3), 4));
  EXPECT_FALSE(r.residency.declare(version(4), 1));
  r.bring(1);
  r.pinned = {1};
  r.ask(3);
  r.ask(4);
  EXPECT_THAT(r.turn().load, IsEmpty());
  r.pinned.clear();
  EXPECT_THAT(r.turn().load, ElementsAre(version(3)));
}

TEST(adapter_residency, a_loading_one_counts) {
  adapter_residency residency({.bytes = 1});
  ASSERT_FALSE(residency.declare(version(1), 1));
  ASSERT_FALSE(residency.declare(version(2), 1));
  residency.is_ready(version(1));
  residency.is_ready(version(2));
  const auto nobody = [](adapter_version) { return false; };
  EXPECT_THAT(residency.turn(nobody).load, ElementsAre(version(1)));
  EXPECT_THAT(residency.turn(nobody).load, IsEmpty());
  EXPECT_EQ(residency.stats().loading_bytes, 1);
}

TEST(adapter_residency, a_failure_is_told_and_tried_again_only_when_declared_anew) {
  adapter_residency residency({.bytes = 2});
  const auto nobody = [](adapter_version) { return false; };
  ASSERT_FALSE(residency.declare(version(1), 1));
  residency.is_ready(version(1));
  residency.turn(nobody);
  residency.failed(version(1), "no such file");
  EXPECT_EQ(residency.stats().loading_bytes, 0);
  ASSERT_NE(residency.failure_of(version(1)), nullptr);
  EXPECT_EQ(*residency.failure_of(version(1)), "no such file");
  EXPECT_FALSE(residency.is_ready(version(1)));
  EXPECT_THAT(residency.turn(nobody).load, IsEmpty());
  ASSERT_FALSE(residency.declare(version(1), 1));
  residency.is_ready(version(1));
  EXPECT_THAT(residency.turn(nobody).load, ElementsAre(version(1)));
}

TEST(adapter_residency, forgets_of_many_those_that_are_away_and_that_nobody_wants) {
  residents r({.bytes = 2});
  r.declare(1024);
  r.bring(1);
  r.use(1);
  for (int i = 3; i <= 1024; ++i) r.given_up.insert(i);
  r.turn();
  EXPECT_TRUE(r.residency.is_declared(version(3))) << "they are not too many yet";
  ASSERT_FALSE(r.residency.declare(version(1025), 1));
  r.given_up.insert(1);
  r.turn();
  EXPECT_FALSE(r.residency.is_declared(version(3)));
  EXPECT_FALSE(r.ask(3));
  EXPECT_TRUE(r.ask(1)) << "it is here";
  EXPECT_TRUE(r.residency.is_declared(version(2))) << "somebody wants it";
  EXPECT_TRUE(r.residency.is_declared(version(1025)));
  ASSERT_FALSE(r.residency.declare(version(3), 1));
  r.given_up.erase(3);
  r.bring(3);
  EXPECT_TRUE(r.ask(3)) << "it was declared again";
}

/// A closed circle of clients, each with one request at a time, over the real scheduler. Loading takes some steps.
class crowd {
 public:
  struct shape {
    int adapters = 1000, room = 32, clients = 96, most_bytes = 1, most_loading = 4;
    int longest_prompt = 40, longest_answer = 24;
    double skew = 1.0;
    int asked_for = 1000;  ///< the clients never ask for the others
    std::int32_t sequences = 48, slots = 32;
  };

  crowd(const shape& form, std::uint32_t seed)
      : shape_(form), random_(seed), residency_({.bytes = form.room, .patience = patience}), scheduler_(hooked(form)) {
    for (int i = 1; i <= form.adapters; ++i) {
      EXPECT_FALSE(residency_.declare(version(i), number(1, form.most_bytes)));
      weights_.push_back(i <= form.asked_for ? std::pow(i, -form.skew) : 0.0);
    }
    popular_ = std::discrete_distribution<int>(weights_.begin(), weights_.end());
    for (int i = 0; i < form.clients; ++i) submit(1 + popular_(random_));
  }

  void submit(int adapter) {
    sequence_request request;
    request.prompt.assign(to_size(number(1, shape_.longest_prompt)), number(0, 1 << 20));
    request.max_tokens = number(1, shape_.longest_answer);
    request.adapter = version(adapter);
    const auto accepted = scheduler_.submit(request);
    ASSERT_TRUE(accepted);
    waiting_[accepted->first] = {step_, adapter};
  }

  void step() {
    ++step_;
    arrive();
    for (const adapter_version v : residency_.turn([&](adapter_version a) { return scheduler_.is_running(a); }).load)
      loading_.emplace(step_ + static_cast<std::uint64_t>(number(0, shape_.most_loading)), v);
    check();
    if (!scheduler_.plan_step({}, plan_)) return;
    outcomes_.clear();
    for (const planned_share& share : plan_.shares) {
      ASSERT_THAT(residency_.residents(), Contains(share.adapter)) << "it runs without its adapter";
      note_start(share.sequence);
      if (share.complete) outcomes_.push_back({share.sequence, token_, false, {}});
    }
    int gone = 0;
    for (const ended_sequence& ended : scheduler_.commit(plan_.id, outcomes_))
      gone += running_.erase(ended.sequence) > 0;
    ended_ += gone;
    for (; refill && gone > 0; --gone) submit(1 + popular_(random_));
  }

  bool busy() const { return !waiting_.empty() || !running_.empty(); }
  std::uint64_t longest_wait() const { return longest_wait_; }
  std::uint64_t oldest_waiting() const {
    std::uint64_t oldest = 0;
    for (const auto& [id, one] : waiting_) oldest = std::max(oldest, step_ - one.since);
    return oldest;
  }
  bool is_waiting(int adapter) const {
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& i) { return i.second.adapter == adapter; });
  }
  int ended() const { return ended_; }
  const adapter_residency& residency() const { return residency_; }

  static constexpr std::uint64_t patience = 32;
  bool refill = true;

 private:
  struct request {
    std::uint64_t since;
    int adapter;
  };

  batch_scheduler::options hooked(const shape& form) {
    batch_scheduler::options options;
    options.blocks = 400;
    options.context = 128;
    options.max_batch_tokens = 128;
    options.max_sequences = form.sequences;
    options.max_adapters = form.slots;
    options.adapter_patience = patience;
    options.is_ready = [this](adapter_version v) { return residency_.is_ready(v); };
    return options;
  }
  int number(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }

  void arrive() {
    while (!loading_.empty() && loading_.begin()->first <= step_) {
      residency_.loaded(loading_.begin()->second);
      loading_.erase(loading_.begin());
    }
  }
  void check() {
    const auto stats = residency_.stats();
    ASSERT_LE(stats.resident_bytes + stats.loading_bytes, shape_.room);
    ASSERT_EQ(stats.loading, loading_.size());
  }
  void note_start(sequence_id id) {
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) return;
    longest_wait_ = std::max(longest_wait_, step_ - found->second.since);
    waiting_.erase(found);
    running_.insert(id);
  }

  shape shape_;
  std::mt19937 random_;
  adapter_residency residency_;
  batch_scheduler scheduler_;
  std::vector<double> weights_;
  std::discrete_distribution<int> popular_;
  std::multimap<std::uint64_t, adapter_version> loading_;
  std::map<sequence_id, request> waiting_;
  std::set<sequence_id> running_;
  step_plan plan_;
  std::vector<sequence_outcome> outcomes_;
  const std::vector<token_id> token_{7};
  std::uint64_t step_ = 0, longest_wait_ = 0;
  int ended_ = 0;
};

/// Steps after which one that waits has had its turn, with `ahead` requests before it and each turn taking patience, a
/// whole sequence and a loading.
std::uint64_t bound(const crowd::shape& form, std::uint64_t ahead) {
  const auto run = static_cast<std::uint64_t>(form.longest_answer + form.longest_prompt);
  return crowd::patience + ahead * (crowd::patience + run + static_cast<std::uint64_t>(form.most_loading) + 2);
}

class adapter_crowds : public ::testing::TestWithParam<crowd::shape> {};

TEST_P(adapter_crowds, keep_the_budget_and_nobody_waits_for_ever) {
  const crowd::shape form = GetParam();
  for (std::uint32_t seed = 1; seed <= (sanitized ? 1 : 3); ++seed) {
    crowd all(form, seed);
    for (int i = 0; i < 4000 && !HasFatalFailure(); ++i) all.step();
    // As many turns overlap as the part of the budget that may be closed at a time has room for.
    const auto overlap = static_cast<std::uint64_t>(std::clamp(form.room / form.most_bytes, 1, 8));
    const std::uint64_t limit = bound(form, static_cast<std::uint64_t>(form.clients)) / overlap;
    EXPECT_LE(std::max(all.longest_wait(), all.oldest_waiting()), limit) << "seed " << seed;
    EXPECT_GT(all.ended(), 0);
    all.refill = false;
    for (int i = 0; i < 20000 && all.busy() && !HasFatalFailure(); ++i) all.step();
    EXPECT_FALSE(all.busy()) << "seed " << seed;
    RecordProperty("longest_wait", static_cast<int>(all.longest_wait()));
  }
}

INSTANTIATE_TEST_SUITE_P(shapes, adapter_crowds,
                         ::testing::Values(crowd::shape{}, crowd::shape{.skew = 0.5}, crowd::shape{.skew = 2.0},
                                           crowd::shape{.most_bytes = 8}, crowd::shape{.room = 4, .clients = 24},
                                           crowd::shape{.room = 8, .clients = 24, .most_bytes = 8, .slots = 8},
                                           crowd::shape{.adapters = 40, .skew = 1.5, .slots = 16}));

TEST(adapter_residency, a_cold_adapter_gets_its_turn_beside_an_endless_stream_of_hot_ones) {
  const crowd::shape form{.adapters = 5, .room = 4, .clients = 40, .skew = 0, .asked_for = 4};
  crowd all(form, 1);
  for (int i = 0; i < 200; ++i) all.step();
  all.submit(5);
  std::uint64_t steps = 0;
  for (; all.is_waiting(5) && steps < 2000 && !HasFatalFailure(); ++steps) all.step();
  EXPECT_LE(steps, bound(form, 1));
}

}  // namespace
}  // namespace troupe
