#include "actors/requests/client_desk.hpp"

#include "actors/wire.hpp"
#include "base/field_error.hpp"
#include "tests/actors/busy_thread.hpp"
#include "tests/actors/support.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

/// A desk behind a real socket, and a client.
class desk : public testing::Test {
 protected:
  explicit desk(const std::string& chat_template = {}) : chat_template_(chat_template) {
    actor_ = spawn_client_desk(system_, {.links = &wire_,
                                         .gateway = gateway_.handle(),
                                         .store = store_.handle(),
                                         .jobs = jobs_.handle(),
                                         .training = {},
                                         .supervisor = supervisor_.handle(),
                                         .prompts = letters_prompting(folder_, 0, chat_template_),
                                         .numbers = std::make_shared<request_numbers>(),
                                         .board = board_,
                                         .cluster = "test",
                                         .model = "letters",
                                         .max_requests_each = 2,
                                         .work = work_});
    const auto pass = [&]<message M>() { wire_.on<M>([to = actor_](incoming<M> in) { tell(to, std::move(in)); }); };
    pass.template operator()<client_request>();
    pass.template operator()<client_cancel>();
    pass.template operator()<client_command>();
    wire_.on_lost([to = actor_](link_id link, const link_end&) { tell(to, link_lost{link}); });
    wire_.start();
    client_ = std::make_unique<peer>();
    link_ = (*client_)->connect(wire_.endpoint());
  }
  ~desk() override {
    tell(actor_, stop_now{});
    client_.reset();
    wire_.stop();
  }

  template <message M>
  void say(M what, std::uint64_t correlation = 0) {
    frame made = to_frame(std::move(what));
    made.correlation = correlation;
    (*client_)->send(link_, std::move(made));
  }
  template <message M>
  M hear() {
    ++heard_;
    EXPECT_TRUE(client_->wait_frames(heard_));
    const frame got = client_->frames().at(heard_ - 1).second;
    last_correlation_ = got.correlation;
    auto what = from_frame<M>(frame(got));
    EXPECT_TRUE(what);
    return what.value_or(M{});
  }
  /// Too long to be read at once. The model has not so many positions.
  void ask_at_length(std::uint64_t id) {
    client_request request;
    request.id = id;
    request.text = std::string(100'000, 'A');
    say(request);
  }
  begin_request ask(std::uint64_t id) {
    client_request request;
    request.id = id;
    request.text = "AB";
    say(request);
    return gateway_.take<begin_request>();
  }
  command_answer command(const std::string& name, const std::string& arguments = "{}") {
    say(client_command{name, arguments}, 77);
    const auto answer = hear<command_answer>();
    EXPECT_EQ(last_correlation_, 77u);
    return answer;
  }

  const std::string chat_template_;
  temp_folder folder_;
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<gateway_actor> gateway_{system_};
  mock<adapter_store_actor> store_{system_};
  mock<jobs_actor> jobs_{system_};
  mock<supervisor_actor> supervisor_{system_};
  wire wire_{peer::listening()};
  std::shared_ptr<task_thread> work_ = std::make_shared<task_thread>();
  client_desk_actor actor_;
  std::unique_ptr<peer> client_;
  link_id link_;
  std::size_t heard_ = 0;
  std::uint64_t last_correlation_ = 0;
};

TEST_F(desk, sends_an_answer_part_by_part) {
  const auto request = ask(5);
  EXPECT_EQ(request.engine.sequence.prompt, letters("AB"));
  request.listener->on_part({0, "He", letters("He"), {}, {}, {}, {}, {}, "pricing@1"});
  request.listener->on_part({0, "y", letters("y"), {}, answer_end{"stop", 2, "pricing@1"}});
  const auto first = hear<client_text>();
  EXPECT_EQ(first.id, 5u);
  EXPECT_EQ(first.text, "He");
  EXPECT_EQ(first.finish, "");
  EXPECT_EQ(first.adapter, "pricing@1");
  const auto last = hear<client_text>();
  EXPECT_EQ(last.tokens, letters("y"));
  EXPECT_EQ(last.finish, "stop");
  EXPECT_EQ(last.prompt_tokens, 2);
  EXPECT_EQ(last.adapter, "pricing@1");
  EXPECT_NE(ask(5).id, request.id) << "the client's id is free again";
}

TEST_F(desk, passes_on_how_an_answer_is_wanted) {
  client_request request;
  request.id = 1;
  request.text = "AB";
  request.batch = true;
  request.skip_tokens = 3;
  say(request);
  const auto passed = gateway_.take<begin_request>();
  EXPECT_EQ(passed.engine.sequence.priority, request_priority::batch);
  EXPECT_EQ(passed.skip_tokens, 3u);
}

TEST_F(desk, frees_the_id_of_a_request_that_is_refused) {
  const auto request = ask(5);
  request.listener->on_refused({.request = request.id, .error = "no room", .retry_after = std::chrono::nanoseconds(1)});
  const auto refused = hear<client_refused>();
  EXPECT_EQ(refused.error, "no room");
  EXPECT_EQ(refused.retry_after_ms, 1u) << "0 would mean that it is of no use";
  EXPECT_NE(ask(5).id, request.id);
}

TEST_F(desk, refuses_at_once_what_nobody_could_answer) {
  client_request request;
  request.id = 1;
  request.tokens = {1000};
  say(request);
  const auto refused = hear<client_refused>();
  EXPECT_EQ(refused.id, 1u);
  EXPECT_TRUE(refused.bad_input);
  EXPECT_NE(refused.error.find("token 1000"), std::string::npos);
}

TEST_F(desk, refuses_what_nobody_would_hear) {
  client_request request;
  request.id = 1;
  request.tokens = {1};
  request.sampling.prompt_logprobs = 5;
  say(request);
  EXPECT_NE(hear<client_refused>().error.find("over HTTP"), std::string::npos);
}

TEST_F(desk, says_by_a_code_that_a_prompt_is_too_long) {
  client_request request;
  request.id = 1;
  request.text = std::string(1000, 'A');
  say(request);
  const auto refused = hear<client_refused>();
  EXPECT_EQ(refused.field_name, "prompt");
  EXPECT_EQ(refused.code, too_long_code);
}

TEST_F(desk, passes_refusals_on) {
  const auto request = ask(3);
  request.listener->on_refused({request.id, "full", refusal_cause::full, std::chrono::microseconds(1500)});
  const auto refused = hear<client_refused>();
  EXPECT_EQ(refused.error, "full");
  EXPECT_EQ(refused.retry_after_ms, 2u);
  EXPECT_FALSE(refused.bad_input);
}

TEST_F(desk, holds_a_client_to_its_share) {
  (void)ask(1);
  client_request again;
  again.id = 1;
  again.text = "A";
  say(again);
  EXPECT_TRUE(hear<client_refused>().bad_input) << "the same id";
  (void)ask(2);
  again.id = 3;
  say(again);
  EXPECT_GT(hear<client_refused>().retry_after_ms, 0u) << "too many";
}

TEST_F(desk, cancels_what_its_client_gives_up) {
  const auto request = ask(1);
  say(client_cancel{1});
  EXPECT_EQ(gateway_.take<end_request>().id, request.id);
}

TEST_F(desk, does_not_take_the_end_of_a_cancelled_request_for_that_of_the_next_one_with_its_id) {
  const auto first = ask(5);
  say(client_cancel{5});
  gateway_.take<end_request>();
  const auto second = ask(5);
  first.listener->on_part({0, "y", letters("y"), {}, answer_end{"stop", 2, {}}});  // it was on its way
  say(client_cancel{5});
  EXPECT_EQ(gateway_.take<end_request>().id, second.id);
}

TEST_F(desk, cancels_everything_of_a_client_that_went_away) {
  const auto first = ask(1), second = ask(2);
  client_.reset();
  std::set<request_id> ended{gateway_.take<end_request>().id, gateway_.take<end_request>().id};
  EXPECT_EQ(ended, (std::set{first.id, second.id}));
}

TEST_F(desk, answers_others_while_a_long_request_is_read) {
  busy_thread busy(*work_);
  ask_at_length(1);
  EXPECT_NE(ask(2).id, request_id());
  EXPECT_EQ(command("status").error, "");
  busy.go_on();
  const auto refused = hear<client_refused>();
  EXPECT_EQ(refused.id, 1u);
  EXPECT_EQ(refused.code, too_long_code);
  EXPECT_NE(ask(1).id, request_id()) << "the client's id is free again";
}

TEST_F(desk, does_not_pass_on_what_was_cancelled_before_it_was_read) {
  busy_thread busy(*work_);
  ask_at_length(1);
  ASSERT_TRUE(is_soon([&] { return work_->waiting() == 1; }));
  say(client_cancel{1});
  (void)gateway_.take<end_request>();
  const auto again = ask(1);
  busy.go_on();
  EXPECT_TRUE(is_soon([&] { return work_->waiting() == 0; }));
  again.listener->on_part({0, "y", letters("y"), {}, answer_end{"stop", 2, {}}});
  EXPECT_EQ(hear<client_text>().text, "y") << "no refusal of the first, which had the same id";
}

TEST_F(desk, reads_a_form_apart) {
  client_request request;
  request.id = 1;
  request.text = "AB";
  request.sampling.constraint.kind = constraint_kind::regex;
  request.sampling.constraint.text = "A+";
  busy_thread busy(*work_);
  say(request);
  EXPECT_TRUE(is_soon([&] { return work_->waiting() == 1; }));
  busy.go_on();
  EXPECT_TRUE(gateway_.take<begin_request>().engine.sampling.constraint);
}

/// Of a model that says with special tokens what is a thought.
class desk_of_marks : public desk {
 protected:
  explicit desk_of_marks(const std::string& marks) : desk("{# " + marks + " #}{{ messages[0].content }}:") {}

  begin_request ask_chat(const output_constraint& form = {}) {
    client_request request;
    request.id = ++last_id_;
    request.messages = R"([{"role":"user","content":"Hi"}])";
    request.sampling.constraint = form;
    say(request);
    return gateway_.take<begin_request>();
  }

 private:
  std::uint64_t last_id_ = 100;
};

class desk_of_channels : public desk_of_marks {
 protected:
  desk_of_channels() : desk_of_marks("<|channel|>analysis <|channel|>final") {}
};

class desk_of_thoughts : public desk_of_marks {
 protected:
  desk_of_thoughts() : desk_of_marks("[THINK] [/THINK]") {}
};

TEST_F(desk_of_thoughts, leaves_their_marks_in_the_texts_of_chats_and_says_what_they_are) {
  EXPECT_FALSE(ask_chat().skip_special);
  EXPECT_EQ(ask_chat({constraint_kind::regex, "A+"}).engine.sequence.prompt, letters("Hi:"));
  const json hello = json::parse(command("hello").result);
  EXPECT_EQ(hello["has_channels"], false);
  EXPECT_EQ(hello["thought_begin"], "[THINK]");
  EXPECT_EQ(hello["thought_end"], "[/THINK]");
  EXPECT_EQ(hello["answer_begin"], "");
  EXPECT_EQ(hello["answer_end"], "");
}

TEST_F(desk_of_channels, leaves_their_marks_in_the_texts_of_chats) {
  EXPECT_FALSE(ask_chat().skip_special);
  EXPECT_TRUE(ask(1).skip_special);
}

TEST_F(desk_of_channels, has_an_answer_of_a_form_in_the_last_one) {
  EXPECT_EQ(ask_chat().engine.sequence.prompt, letters("Hi:"));
  EXPECT_EQ(ask_chat({constraint_kind::regex, "A+"}).engine.sequence.prompt, letters("Hi:<|channel|>final<|message|>"));
}

TEST_F(desk, composes_the_status) {
  EXPECT_EQ(command("status").result, R"({"nodes":[],"replicas":[],"adapters":[],"jobs":[]})");
  board_->post("nodes", R"([{"name":"w0"}])");
  EXPECT_EQ(command("status").result, R"({"nodes":[{"name":"w0"}],"replicas":[],"adapters":[],"jobs":[]})");
  board_->post("adapters.others", "3");
  EXPECT_EQ(json::parse(command("status").result)["other_adapters"], 3);
  board_->post("jobs.others", "4");
  EXPECT_EQ(json::parse(command("status").result)["other_jobs"], 4);
  board_->post("journal", R"("the disk is full")");
  EXPECT_EQ(json::parse(command("status").result)["journal"], "the disk is full");
  const json hello = json::parse(command("hello").result);
  EXPECT_EQ(hello["cluster"], "test");
  EXPECT_EQ(hello["model"], "letters");
  EXPECT_EQ(hello["instance"], json::parse(command("hello").result)["instance"]);
  EXPECT_EQ(hello["has_channels"], false);
  EXPECT_EQ(hello["thought_begin"], "");
}

TEST_F(desk, hands_commands_to_whom_they_belong) {
  say(client_command{"adapters.list", "{}"}, 8);
  store_.take<command_call>().answer({"[]"});
  EXPECT_EQ(hear<command_answer>().result, "[]");
  EXPECT_EQ(last_correlation_, 8u);
  say(client_command{"job.get", R"({"id":"x"})"}, 9);
  const auto call = jobs_.take<command_call>();
  EXPECT_EQ(call.command.arguments, R"({"id":"x"})");
  call.answer({{}, "there is none", command_fault::unknown});
  const auto refused = hear<command_answer>();
  EXPECT_EQ(refused.error, "there is none");
  EXPECT_EQ(refused.fault, command_fault::unknown);
  say(client_command{"drain", R"({"name":"w0"})"}, 10);
  EXPECT_EQ(supervisor_.take<command_call>().command.arguments, R"({"name":"w0"})");
}

TEST_F(desk, refuses_commands_that_it_does_not_know) {
  const auto unknown = command("nonsense");
  EXPECT_EQ(unknown.fault, command_fault::bad_input);
  EXPECT_NE(unknown.error.find("adapters.*, job.*"), std::string::npos) << unknown.error;
}

}  // namespace
}  // namespace troupe::test
