#include "actors/requests/gateway.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "actors/requests/answer_order.hpp"
#include "base/field_error.hpp"
#include "tests/actors/support.hpp"

namespace troupe::test {
namespace {

class gateway : public testing::Test {
 protected:
  gateway() { start(std::chrono::seconds(30)); }
  ~gateway() override { tell(actor_, stop_now{}); }

  void start(duration longest_wait, std::size_t max_waiting = 4096) {
    if (actor_) tell(actor_, stop_now{});
    actor_ = spawn_gateway(system_, {.router = router_.handle(),
                                     .store = store_.handle(),
                                     .prompts = prompts_,
                                     .adapters = adapters_,
                                     .board = board_,
                                     .max_waiting = max_waiting,
                                     .longest_wait = longest_wait,
                                     .report_interval = std::chrono::milliseconds(1)});
  }

  using request_change = std::function<void(begin_request&)>;
  std::shared_ptr<recording_listener> begin(std::uint64_t id, const request_change& change = {}) {
    return begin(id, "", change);
  }
  std::shared_ptr<recording_listener> begin(std::uint64_t id, const std::string& adapter,
                                            const request_change& change = {}) {
    auto listener = std::make_shared<recording_listener>();
    begin_request request;
    request.id = request_id(id);
    request.engine = prompts_->prepare({"AB", {}, {}}, {}, 1, request_priority::interactive);
    request.adapter = adapter;
    request.listener = listener;
    if (change) change(request);
    tell(actor_, std::move(request));
    return listener;
  }
  void bring(std::uint64_t id, std::string_view text, std::optional<end_reason> end = {}, std::int32_t index = 0) {
    tell(actor_, token_batch{{{request_id(id), index, letters(text), {}, end}}});
  }

  temp_folder folder_;
  std::shared_ptr<const prompting> prompts_ = letters_prompting(folder_);
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<router_actor> router_{system_};
  mock<adapter_store_actor> store_{system_};
  gateway_actor actor_;
};

TEST_F(gateway, streams_text_and_says_how_it_ended) {
  const auto listener = begin(7);
  const auto routed = router_.take<routed_request>();
  EXPECT_EQ(routed.id, request_id(7));
  EXPECT_EQ(routed.engine.sequence.prompt, letters("AB"));
  EXPECT_EQ(routed.engine.sequence.adapter, no_adapter);
  bring(7, "He");
  bring(7, "y", end_reason::length);
  const auto first = listener->heard.take<answer_part>();
  EXPECT_EQ(first.text, "He");
  EXPECT_EQ(first.tokens, letters("He"));
  EXPECT_FALSE(first.end);
  const auto last = listener->heard.take<answer_part>();
  EXPECT_EQ(last.text, "y");
  ASSERT_TRUE(last.end);
  EXPECT_EQ(last.end->finish, "length");
  EXPECT_EQ(last.end->prompt_tokens, 2);
  EXPECT_EQ(last.end->adapter, "");
}

TEST_F(gateway, passes_on_what_comes_beside_the_text) {
  const auto listener = begin(1);
  answer_tokens first{.request = request_id(1)};
  first.scored = {sampled_token{.token = 5}};
  first.timing = answer_timing{.cached_tokens = 7};
  tell(actor_, token_batch{{first}});
  const auto scored = listener->heard.take<answer_part>();
  EXPECT_EQ(scored.scored.at(0).token, 5);
  EXPECT_EQ(scored.timing.value().cached_tokens, 7);
  bring(1, "\x7f");  // a special token, which is no text
  EXPECT_EQ(listener->heard.take<answer_part>().tokens.size(), 1u);
  answer_tokens last{.request = request_id(1), .end = end_reason::stop};
  last.hidden = {0.5f};
  tell(actor_, token_batch{{last}});
  EXPECT_EQ(listener->heard.take<answer_part>().hidden, std::vector{0.5f});
}

TEST_F(gateway, ends_at_a_stop_string_across_steps_and_cancels_the_rest) {
  const auto listener = begin(1, [](begin_request& request) { request.engine.sampling.stop = {"low"}; });
  bring(1, "Hello");
  EXPECT_EQ(listener->heard.take<answer_part>().text, "Hel") << "what may begin a stop string is held back";
  bring(1, "w!");
  const auto last = listener->heard.take<answer_part>();
  EXPECT_EQ(last.text, "");
  EXPECT_EQ(last.tokens, letters("w")) << "the token that ended it is the last";
  ASSERT_TRUE(last.end);
  EXPECT_EQ(last.end->finish, "stop");
  EXPECT_EQ(last.end->stopped_by.text, "low");
  EXPECT_EQ(router_.take<cancel_request>().id, request_id(1));
}

TEST_F(gateway, says_which_stop_token_ended_an_answer_but_not_the_models_own) {
  const auto stopped_by = [&](token_id ending, bool ignore_eos = false, end_reason end = end_reason::stop) {
    const auto listener = begin(1, [&](begin_request& request) {
      request.engine.sampling.stop_tokens = {7, 1};
      request.engine.sampling.ignore_eos = ignore_eos;
      request.engine.end_tokens = {1, 2};
    });
    answer_tokens last{.request = request_id(1), .end = end};
    last.ending = sampled_token{.token = ending};
    tell(actor_, token_batch{{last}});
    return listener->heard.take<answer_part>().end->stopped_by;
  };
  EXPECT_EQ(stopped_by(7).token, 7);
  EXPECT_FALSE(stopped_by(7).text);
  EXPECT_FALSE(stopped_by(2).token);
  EXPECT_FALSE(stopped_by(1).token) << "it would have ended without the request";
  EXPECT_EQ(stopped_by(1, true).token, 1);
}

TEST_F(gateway, passes_over_stop_strings_before_the_least_number_of_tokens) {
  const auto listener = begin(1, [](begin_request& request) {
    request.engine.sampling.stop = {"lo", "w"};
    request.engine.sampling.min_tokens = 6;
  });
  bring(1, "Hello");
  EXPECT_EQ(listener->heard.take<answer_part>().text, "Hello");
  bring(1, "wow");
  const auto last = listener->heard.take<answer_part>();
  EXPECT_EQ(last.text, "wo") << "the sixth token is not too many";
  EXPECT_EQ(last.end->stopped_by.text, "w");
  EXPECT_EQ(last.tokens, letters("wow"));
  EXPECT_EQ(last.end->finish, "stop");
}

TEST_F(gateway, keeps_the_stop_string_where_that_is_asked_for) {
  const auto listener = begin(1, [](begin_request& request) {
    request.engine.sampling.stop = {"low"};
    request.keep_stop = true;
  });
  bring(1, "Hellowly");
  const auto last = listener->heard.take<answer_part>();
  EXPECT_EQ(last.text, "Hellow");
  EXPECT_EQ(last.end->finish, "stop");
}

TEST_F(gateway, keeps_the_stop_token_where_that_is_asked_for_and_no_token_of_the_model) {
  constexpr token_id special = 95;
  const auto said = [&](token_id ending, bool keep, bool skip_special = true) {
    const auto listener = begin(1, [&](begin_request& request) {
      request.engine.sampling.stop = {"Heal"};
      request.engine.sampling.stop_tokens = {letters("y")[0], special};
      request.engine.end_tokens = letters("e");
      request.keep_stop = keep;
      request.skip_special = skip_special;
    });
    answer_tokens last{.request = request_id(1), .tokens = letters("He"), .end = end_reason::stop};
    last.ending = sampled_token{.token = ending};
    tell(actor_, token_batch{{last}});
    const auto part = listener->heard.take<answer_part>();
    EXPECT_EQ(part.tokens, letters("He"));
    EXPECT_EQ(part.end->token->token, ending);
    return part.text;
  };
  EXPECT_EQ(said(letters("y")[0], true), "Hey");
  EXPECT_EQ(said(letters("y")[0], false), "He");
  EXPECT_EQ(said(letters("e")[0], true), "He");
  EXPECT_EQ(said(special, true), "He") << "special tokens are no text";
  EXPECT_EQ(said(special, true, false), "He</s>") << "unless that is asked for";
}

TEST_F(gateway, gives_what_was_held_back_when_the_answer_ends_otherwise) {
  const auto listener = begin(1, [](begin_request& request) { request.engine.sampling.stop = {"low"}; });
  bring(1, "lo", end_reason::length);
  const auto last = listener->heard.take<answer_part>();
  EXPECT_EQ(last.text, "lo");
  EXPECT_FALSE(last.end->stopped_by.text);
}

TEST_F(gateway, cancels_one_of_several_answers_as_soon_as_it_stops) {
  const auto listener = begin(1, [](begin_request& request) {
    request.engine.sampling.stop = {"x"};
    request.engine.sequence.answers = 2;
  });
  EXPECT_EQ(router_.take<routed_request>().engine.sequence.answers, 2);
  bring(1, "ax", {}, 1);
  EXPECT_EQ(listener->heard.take<answer_part>().end->finish, "stop");
  const auto cancelled = router_.take<cancel_request>();
  EXPECT_EQ(cancelled.id, request_id(1));
  EXPECT_EQ(cancelled.answer, 1);
  bring(1, "bb", {}, 1);
  bring(1, "cc", {}, 0);
  const auto other = listener->heard.take<answer_part>();
  EXPECT_EQ(other.index, 0);
  EXPECT_EQ(other.text, "cc") << "an answer that has ended says no more";
  bring(1, "", end_reason::stop, 0);
  EXPECT_EQ(listener->heard.take<answer_part>().end->finish, "stop");
  tell(actor_, end_request{request_id(1)});
  begin(2);
  (void)router_.take<routed_request>();
  EXPECT_EQ(router_.count<cancel_request>(), 0u) << "nothing of it is left";
}

TEST_F(gateway, frees_a_request_whose_client_went_away) {
  const auto listener = begin(1), other = begin(2);
  tell(actor_, end_request{request_id(1)});
  EXPECT_EQ(router_.take<cancel_request>().id, request_id(1));
  bring(1, "Hello", end_reason::stop);
  bring(2, "Hello", end_reason::stop);
  EXPECT_EQ(other->heard.take<answer_part>().text, "Hello");
  EXPECT_EQ(listener->heard.count<answer_part>(), 0u);
}

TEST_F(gateway, shows_soon_that_a_request_is_over_however_it_ended) {
  const auto comes_to_run = [this](int requests) {
    const std::string text = fmt::format("\"running\":{},", requests);
    return is_soon([&] { return board_->read("gateway").find(text) != std::string::npos; });
  };
  for (std::uint64_t id = 1; id <= 3; ++id) begin(id);
  EXPECT_TRUE(comes_to_run(3));
  bring(1, "Hello", end_reason::stop);
  EXPECT_TRUE(comes_to_run(2));
  tell(actor_, request_refused{request_id(2), "no room"});
  EXPECT_TRUE(comes_to_run(1));
  tell(actor_, end_request{request_id(3)});
  EXPECT_TRUE(comes_to_run(0));
}

TEST_F(gateway, counts_as_cancelled_only_what_was_not_over) {
  begin(1);
  for (int i = 0; i < 2; ++i) tell(actor_, end_request{request_id(1)});
  tell(actor_, wake{});
  begin(2);
  for (int i = 0; i < 2; ++i) router_.take<routed_request>();  // so all of these were heard
  EXPECT_EQ(json::parse(board_->read("gateway"))["cancelled"], 1);
}

TEST_F(gateway, skips_the_tokens_that_the_client_has) {
  const auto listener = begin(1, [](begin_request& request) { request.skip_tokens = 3; });
  bring(1, "He");
  bring(1, "llo");
  const auto part = listener->heard.take<answer_part>();
  EXPECT_EQ(part.text, "lo");
  EXPECT_EQ(part.tokens, letters("lo"));
}

TEST_F(gateway, shows_special_tokens_where_a_request_asks_for_them) {
  constexpr token_id special = 95;
  for (const bool skip : {true, false}) {
    const auto listener = begin(1, [&](begin_request& request) { request.skip_special = skip; });
    tell(actor_, token_batch{{{request_id(1), 0, {letters("a")[0], special}, {}, end_reason::length}}});
    EXPECT_EQ(listener->heard.take<answer_part>().text, skip ? "a" : "a</s>");
  }
}

TEST_F(gateway, passes_refusals_on) {
  const auto listener = begin(1);
  tell(actor_, request_refused{request_id(1), "full", refusal_cause::full, std::chrono::seconds(2)});
  const auto refused = listener->heard.take<request_refused>();
  EXPECT_EQ(refused.error, "full");
  EXPECT_EQ(refused.cause, refusal_cause::full);
  EXPECT_EQ(refused.retry_after, std::chrono::seconds(2));
}

TEST_F(gateway, cancels_the_other_answers_of_a_request_of_which_one_is_refused) {
  const auto alone = begin(1);
  const auto one_of_two = begin(2, [](begin_request& request) { request.engine.sequence.answers = 2; });
  for (const std::uint64_t id : {1u, 2u}) tell(actor_, request_refused{request_id(id), "gone", {}, {}});
  (void)one_of_two->heard.take<request_refused>();
  EXPECT_EQ(router_.take<cancel_request>().id, request_id(2));
}

TEST_F(gateway, asks_the_store_for_an_adapter_that_nobody_published) {
  const auto first = begin(1, "pricing"), second = begin(2, "pricing");
  EXPECT_EQ(store_.take<find_adapter>().name, "pricing");
  adapter_directory::snapshot now;
  now.names["pricing"] = adapter_version(4);
  now.versions[adapter_version(4)].full_name = "pricing@1";
  adapters_->publish(std::move(now));
  tell(actor_, adapter_found{"pricing", {}});
  EXPECT_EQ(router_.take<routed_request>().engine.sequence.adapter, adapter_version(4));
  EXPECT_EQ(router_.take<routed_request>().engine.sequence.adapter, adapter_version(4));
  EXPECT_EQ(store_.count<find_adapter>(), 0u) << "one question for both";
  bring(1, "x", end_reason::stop);
  EXPECT_EQ(first->heard.take<answer_part>().end->adapter, "pricing@1");
  EXPECT_TRUE(adapters_->is_held(adapter_version(4))) << "the second request may need it again";
  bring(2, "x", end_reason::stop);
  EXPECT_EQ(second->heard.take<answer_part>().end->adapter, "pricing@1");
  EXPECT_FALSE(adapters_->is_held(adapter_version(4)));
}

TEST_F(gateway, says_since_when_a_request_waits_also_if_it_was_for_an_adapter) {
  const instant before = monotonic_clock().now();
  begin(1);
  const instant accepted = router_.take<routed_request>().accepted;
  EXPECT_GE(accepted, before);
  EXPECT_LE(accepted, monotonic_clock().now());
  begin(2, "pricing");
  (void)store_.take<find_adapter>();
  const instant asked = monotonic_clock().now();
  adapter_directory::snapshot now;
  now.names["pricing"] = adapter_version(4);
  now.versions[adapter_version(4)].full_name = "pricing@1";
  adapters_->publish(std::move(now));
  tell(actor_, adapter_found{"pricing", {}});
  const instant waited_since = router_.take<routed_request>().accepted;
  EXPECT_GE(waited_since, accepted);
  EXPECT_LE(waited_since, asked);
}

TEST_F(gateway, ends_a_request_that_waits_for_an_adapter_and_no_other) {
  const auto gone = begin(1, "pricing"), stays = begin(2, "pricing");
  tell(actor_, end_request{request_id(1)});
  tell(actor_, adapter_found{"pricing", "there is none"});
  EXPECT_EQ(stays->heard.take<request_refused>().request, request_id(2));
  EXPECT_EQ(gone->heard.count<request_refused>(), 0u);
}

TEST_F(gateway, has_room_again_for_those_who_wait_for_an_adapter_however_the_wait_ended) {
  const auto found = [this] { tell(actor_, adapter_found{"pricing", "there is none"}); };
  const auto ended = [this] { tell(actor_, end_request{request_id(1)}); };
  for (const std::function<void()>& end_wait : {std::function<void()>(found), std::function<void()>(ended)}) {
    start(std::chrono::seconds(30), 1);
    const auto first = begin(1, "pricing");
    EXPECT_EQ(begin(2, "margins")->heard.take<request_refused>().cause, refusal_cause::full);
    end_wait();
    const auto next = begin(3, "margins");
    tell(actor_, adapter_found{"margins", "there is none either"});
    EXPECT_EQ(next->heard.take<request_refused>().error, "there is none either");
  }
  start(std::chrono::milliseconds(1), 1);
  for (const std::uint64_t id : {1u, 2u})
    EXPECT_NE(begin(id, "pricing")->heard.take<request_refused>().cause, refusal_cause::full);
}

TEST_F(gateway, counts_what_it_is_asked_and_what_it_answers) {
  begin(1);
  bring(1, "Hello", end_reason::stop);
  begin(2);
  tell(actor_, request_refused{request_id(2), "no room"});
  begin(3, "../etc");
  begin(4, "pricing");
  tell(actor_, end_request{request_id(4)});
  EXPECT_TRUE(is_soon([&] { return board_->read("gateway").find("\"cancelled\":1,") != std::string::npos; }));
  const json shown = json::parse(board_->read("gateway"));
  EXPECT_EQ(shown["requests"], 4);
  EXPECT_EQ(shown["prompt_tokens"], 4);
  EXPECT_EQ(shown["answer_tokens"], 5);
  EXPECT_EQ(shown["refused"], 2);
  EXPECT_EQ(shown["cancelled"], 1);
  EXPECT_EQ(shown["waiting_for_adapters"], 0);
  EXPECT_EQ(shown["running"], 0);
}

class unwritten_format final : public answer_format {
  std::string whole(const std::vector<answer_choice>&, const answer_usage&) override { return {}; }
};

/// Requests like those of one order: all for one adapter, with one version.
class orders : public gateway {
 protected:
  void publish(std::uint64_t version) {
    adapter_directory::snapshot now;
    now.names["pricing"] = adapter_version(version);
    now.versions[adapter_version(version)].full_name = "pricing@" + std::to_string(version);
    adapters_->publish(std::move(now));
  }
  std::vector<begin_request> order_of(std::size_t prompts) {
    answer_order order;
    order.prompts.assign(prompts, {"AB", {}, {}});
    order.adapter = "pricing";
    unwritten_format format;
    auto made = requests_of(order, format, *prompts_, numbers_);
    for (begin_request& each : made) each.listener = std::make_shared<recording_listener>();
    return made;
  }
  adapter_version begun_with(const begin_request& request) {
    tell(actor_, request);
    return router_.take<routed_request>().engine.sequence.adapter;
  }

  request_numbers numbers_;
};

TEST_F(orders, have_one_version_of_an_adapter_whatever_is_published_meanwhile) {
  publish(1);
  const auto order = order_of(2), next = order_of(1);
  EXPECT_EQ(begun_with(order[0]), adapter_version(1));
  publish(2);
  EXPECT_EQ(begun_with(order[1]), adapter_version(1));
  EXPECT_EQ(begun_with(next[0]), adapter_version(2));
}

TEST_F(orders, repeat_no_more_tokens_of_prompts_than_one_response_may_have) {
  answer_order order;
  order.prompts.assign(100, {std::string(60, 'A'), {}, {}});
  order.n = 128;
  unwritten_format format;
  const auto made = [&] { return requests_of(order, format, *prompts_, numbers_).size(); };
  EXPECT_EQ(made(), 100u);
  order.token_ids = true;
  EXPECT_THAT([&] { made(); },
              testing::ThrowsMessage<field_error>(testing::HasSubstr("return_token_ids would repeat")));
}

TEST_F(orders, have_one_version_also_where_some_waited_for_it) {
  const auto order = order_of(2);
  tell(actor_, order[0]);
  (void)store_.take<find_adapter>();
  publish(1);
  tell(actor_, adapter_found{"pricing", {}});
  EXPECT_EQ(router_.take<routed_request>().engine.sequence.adapter, adapter_version(1));
  publish(2);
  EXPECT_EQ(begun_with(order[1]), adapter_version(1));
}

TEST_F(orders, hear_with_the_first_part_which_version_answers) {
  publish(1);
  const begin_request request = order_of(1)[0];
  (void)begun_with(request);
  bring(request.id.value, "He");
  bring(request.id.value, "y");
  auto& heard = static_cast<recording_listener&>(*request.listener).heard;
  EXPECT_EQ(heard.take<answer_part>().adapter, "pricing@1");
  EXPECT_EQ(heard.take<answer_part>().adapter, "");
}

TEST_F(gateway, refuses_an_adapter_that_there_is_not) {
  const auto unknown = begin(1, "nothing"), odd = begin(2, "../etc");
  tell(actor_, adapter_found{"nothing", "adapter nothing: there is none", true});
  const auto refused = unknown->heard.take<request_refused>();
  EXPECT_EQ(refused.error, "adapter nothing: there is none");
  EXPECT_EQ(refused.cause, refusal_cause::bad_input);
  EXPECT_TRUE(refused.is_unknown_adapter);
  EXPECT_EQ(odd->heard.take<request_refused>().cause, refusal_cause::bad_input);
}

TEST_F(gateway, tells_an_adapter_that_cannot_be_used_from_one_that_is_not_there) {
  const auto broken = begin(1, "broken");
  tell(actor_, adapter_found{"broken", "adapter broken: its folder is empty"});
  EXPECT_FALSE(broken->heard.take<request_refused>().is_unknown_adapter);
}

/// A time would say that there is no room, and batch jobs would wait for room before anything else.
TEST_F(gateway, does_not_say_when_to_try_again_where_an_adapter_is_all_right_and_a_disk_is_full) {
  const auto waiting = begin(1, "pricing");
  tell(actor_, adapter_found{"pricing", "the disk is full", false, true});
  const auto refused = waiting->heard.take<request_refused>();
  EXPECT_EQ(refused.cause, refusal_cause::unavailable);
  EXPECT_EQ(refused.retry_after, duration{});
  start(std::chrono::milliseconds(20));  // later than the next report
  const auto overdue = begin(2, "pricing")->heard.take<request_refused>();
  EXPECT_EQ(overdue.cause, refusal_cause::unavailable);
  EXPECT_EQ(overdue.retry_after, duration{});
}

TEST_F(gateway, tells_everyone_when_it_is_stopped) {
  const auto running = begin(1), waiting = begin(2, "pricing");
  tell(actor_, stop_now{});
  EXPECT_GT(running->heard.take<request_refused>().retry_after, duration{});
  EXPECT_EQ(waiting->heard.take<request_refused>().cause, refusal_cause::unavailable);
}

}  // namespace
}  // namespace troupe::test
