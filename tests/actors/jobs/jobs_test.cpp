#include "base/to_size.hpp"
#include "tests/actors/jobs/jobs_fixture.hpp"

namespace troupe::test {
namespace {

TEST_F(jobs, answers_every_line_with_the_options_of_job_and_line) {
  head now(folder_, prompts_);
  now.submit("job-1", {R"({"prompt":"A","custom_id":"first","max_tokens":3})", R"({"tokens":[34],"adapter":"b@2"})"},
             {{"adapter", "a"}, {"seed", 5}, {"stop", "x"}, {"min_tokens", 2}});
  const auto first = now.next(), second = now.next();
  EXPECT_EQ(first.adapter, "a");
  EXPECT_EQ(first.engine.sequence.priority, request_priority::batch);
  EXPECT_EQ(first.engine.sampling.max_tokens, 3);
  EXPECT_EQ(first.engine.sampling.min_tokens, 2);
  EXPECT_EQ(first.engine.sampling.seed, 5u);
  EXPECT_EQ(first.engine.sampling.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(first.engine.sampling.temperature, 0);
  EXPECT_EQ(second.adapter, "b@2");
  head::answer(second);
  head::answer(first);
  const json job = now.wait("job-1");
  EXPECT_EQ(job["state"], "succeeded");
  EXPECT_EQ(job["ok"], 2);
  const auto outputs = now.outputs("job-1");
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].dump(),
            R"({"index":0,"custom_id":"first","text":"A","tokens":[33],"finish_reason":"length","prompt_tokens":1,)"
            R"("adapter":"a"})");
  EXPECT_EQ(outputs[1]["custom_id"], nullptr);
  EXPECT_NE(now.board->read("jobs").find("job-1"), std::string::npos);
}

TEST_F(jobs, say_what_to_do_about_an_output_that_is_too_long) {
  head now(folder_, prompts_);
  now.submit("job-1", {R"({"prompt":"A"})"});
  const auto asked = now.next();
  answer_part part;
  part.text = std::string(5 << 20, 'x');
  part.end = answer_end{"length", 1, {}};
  asked.listener->on_part(std::move(part));
  EXPECT_EQ(now.wait("job-1")["failed"], 1);
  const std::string error = now.outputs("job-1").at(0)["error"];
  EXPECT_NE(error.find("4194304: ask for fewer tokens"), std::string::npos) << error;
}

TEST_F(jobs, of_somebody_else_are_none_to_an_owner_who_asks) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(1), json::object(), "ann");
  for (const char* command : {"job.get", "job.outputs", "job.events", "job.cancel", "job.forget"}) {
    const auto answer = now.run(command, {{"id", "job-1"}, {"from", 0}, {"owner", "bob"}});
    EXPECT_EQ(answer.fault, command_fault::unknown);
    EXPECT_NE(answer.error.find("there is none"), std::string::npos) << command << answer.error;
  }
  EXPECT_EQ(now.get("job.list", {{"owner", "bob"}}).size(), 0u);
  EXPECT_EQ(now.get("job.list", {{"owner", "ann"}}).size(), 1u);
  EXPECT_EQ(now.get("job.cancel", {{"id", "job-1"}, {"owner", "ann"}})["state"], "cancelled");
}

TEST_F(jobs, tell_the_probabilities_that_a_line_asks_for) {
  head now(folder_, prompts_);
  now.submit("job-1", {R"({"prompt":"A","logprobs":1})"});
  const auto asked = now.next();
  EXPECT_EQ(asked.engine.sampling.logprobs, 1);
  answer_part part;
  part.text = "B", part.tokens = {34}, part.details = {{34, -0.5f, {{35, -1.5f}}}};
  part.end = answer_end{"length", 1, {}};
  asked.listener->on_part(std::move(part));
  now.wait("job-1");
  EXPECT_EQ(now.outputs("job-1").at(0)["logprobs"].dump(),
            R"([{"token":34,"logprob":-0.5,"top":[{"token":35,"logprob":-1.5}]}])");
}

TEST_F(jobs, shows_a_change_that_comes_right_after_another) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(1));
  now.use([](journal& book) { EXPECT_TRUE(book.cancel("job-1")); });
  EXPECT_TRUE(is_soon([&] {
    now.get("job.get", {{"id", "job-1"}});
    return now.board->read("jobs").find("cancelled") != std::string::npos;
  }));
}

TEST_F(jobs, are_shown_at_intervals_however_often_outputs_are_written) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.post_interval = std::chrono::hours(1); });
  now.submit("job-1", lines(2));
  head::answer(now.next());
  now.wait_for_answers("job-1", 1);
  EXPECT_NE(now.board->read("jobs").find("\"ok\":0"), std::string::npos) << now.board->read("jobs");
  head::answer(now.next());
  EXPECT_EQ(now.wait("job-1")["ok"], 2) << "they are written without that";
}

/// Who was told that a job is over may look at the board next.
TEST_F(jobs, are_shown_at_once_as_over) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.post_interval = std::chrono::hours(1); });
  const std::vector<std::string> tunes{"one", "two"};
  now.use([&](journal& book) {
    for (const std::string& id : tunes) {
      EXPECT_TRUE(book.create_job({id, "fine-tune", "", "{}", 0}).ok());
      EXPECT_TRUE(book.seal(id).ok());
      EXPECT_TRUE(book.start(id).ok());
    }
  });
  fine_tune_figures running;
  running.trainers = "gpu-1";
  now.board->post_fine_tunes({{"one", running}});
  const auto shown = [&](const std::string& id) {
    now.get("job.get", {{"id", id}});  // so what was told before has arrived
    for (const json& job : json::parse(now.board->read("jobs")))
      if (job["id"] == id) return job;
    return json::object();
  };
  now.use([](journal& book) { EXPECT_TRUE(book.finish("one", job_state::failed, "why").ok()); });
  const json failed = shown("one");
  EXPECT_EQ(failed.value("state", ""), "failed");
  EXPECT_FALSE(failed.contains("trainer")) << "nobody works on it any more";
  save_catalogue publishing;
  publishing.together_with = [](journal& book) { EXPECT_TRUE(book.succeed("two", "two@1").ok()); };
  EXPECT_FALSE(now.save(std::move(publishing)).refusal);
  EXPECT_EQ(shown("two").value("state", ""), "succeeded");
}

TEST_F(jobs, makes_errors_of_bad_lines_and_goes_on) {
  head now(folder_, prompts_);
  now.submit("job-1", {"{", R"({"prompt":"A","max_token":3})", R"({"custom_id":"x"})", R"({"prompt":"B"})",
                       R"({"prompt":"A","temperature":-1})", "[]", R"({"tokens":[1000]})"});
  head::answer(now.next());
  EXPECT_EQ(now.wait("job-1")["failed"], 6);
  const auto outputs = now.outputs("job-1");
  ASSERT_EQ(outputs.size(), 7u);
  EXPECT_EQ(outputs[2]["custom_id"], "x");
  EXPECT_NE(outputs[1]["error"].get<std::string>().find("max_token"), std::string::npos);
  EXPECT_EQ(outputs[3]["text"], "B");
  for (const int i : {0, 1, 2, 4, 5, 6}) EXPECT_TRUE(outputs[to_size(i)].contains("error")) << i;
}

TEST_F(jobs, answer_chats_of_models_with_channels_as_a_client_is_answered_at_once) {
  const temp_folder folder;
  head now(folder_,
           letters_prompting(folder, 0, "{# <|channel|>analysis <|channel|>final #}{{ messages[0].content }}:"));
  const std::string messages = R"("messages":[{"role":"user","content":"Hi"}])";
  now.submit("job-1", {"{" + messages + "}", "{" + messages + R"(,"guided_regex":"A+"})", R"({"prompt":"Hi"})"});
  const auto chat = now.next(), of_a_form = now.next(), plain = now.next();
  EXPECT_FALSE(chat.skip_special) << "the marks are special tokens";
  EXPECT_EQ(chat.engine.sequence.prompt, letters("Hi:"));
  EXPECT_EQ(of_a_form.engine.sequence.prompt, letters("Hi:<|channel|>final<|message|>"));
  EXPECT_TRUE(plain.skip_special);
}

class no_format final : public answer_format {
 public:
  std::string whole(const std::vector<answer_choice>&, const answer_usage&) override {
    throw std::runtime_error("cannot be written");
  }
};

/// A line that stopped them would do so in every life of a head.
TEST_F(jobs, go_on_whatever_is_thrown_over_a_line) {
  const auto reader = [](std::string_view text, const std::string&, std::uint64_t) {
    if (text.find("bad") != text.npos) throw std::runtime_error("cannot be read");
    batch_line line = read_batch_line(text, "", 0);
    line.asked.format = std::make_unique<no_format>();
    return line;
  };
  head now(folder_, prompts_, [&](jobs_parts& parts) { parts.read_for_endpoint = reader; });
  now.submit("job-1", {R"({"prompt":"A"})", R"({"prompt":"B","custom_id":"bad"})"}, {{"endpoint", "/v1/any"}});
  head::answer(now.next());
  EXPECT_EQ(now.wait("job-1")["failed"], 2);
  const auto outputs = now.outputs("job-1");
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0]["error"], "cannot be written");
  EXPECT_EQ(outputs[1]["error"], "cannot be read");
  EXPECT_EQ(outputs[1]["custom_id"], "bad");
}

TEST_F(jobs, fail_whose_options_nobody_can_read_any_more) {
  {
    journal book({.file = folder_.path() / "journal.db"});
    ASSERT_TRUE(book.create_job({"job-1", "batch", "", R"({"max_token":3})", 1}).ok());
    ASSERT_TRUE(book.add_lines("job-1", 0, lines(1)).ok());
    ASSERT_TRUE(book.seal("job-1").ok());
  }
  head now(folder_, prompts_);
  const json job = now.wait("job-1");
  EXPECT_EQ(job["state"], "failed");
  EXPECT_NE(job["error"].get<std::string>().find("max_token"), std::string::npos);
}

/// A line of one request each, with two prompts, as lines of batches may have.
endpoint_line_reader reader_of_two_prompts(inbox& seeds) {
  return [&seeds](std::string_view text, const std::string&, std::uint64_t seed) {
    seeds.put(seed);
    batch_line line = read_batch_line(text, "", 0);
    line.asked.order.prompts.push_back(line.asked.order.prompts[0]);
    return line;
  };
}

TEST_F(jobs, end_a_line_of_which_any_prompt_is_refused_with_all_its_requests) {
  inbox seeds;
  head now(folder_, prompts_, [&](jobs_parts& parts) { parts.read_for_endpoint = reader_of_two_prompts(seeds); });
  now.submit("job-1", lines(1), {{"endpoint", "/v1/any"}});
  const auto first = now.next(), second = now.next();
  second.listener->on_refused({second.id, "no such adapter", refusal_cause::bad_input, {}});
  EXPECT_EQ(now.wait("job-1")["failed"], 1);
  EXPECT_EQ(now.next_end().id, first.id);
  head::answer(first);  // too late
  EXPECT_EQ(now.outputs("job-1").at(0)["error"], "no such adapter");
}

TEST_F(jobs, give_each_line_a_seed_of_its_own_that_is_the_same_in_every_life) {
  inbox seeds;
  std::vector<std::uint64_t> first, later;
  for (auto* drawn : {&first, &later}) {
    head now(folder_, prompts_, [&](jobs_parts& parts) { parts.read_for_endpoint = reader_of_two_prompts(seeds); });
    if (drawn == &first) now.submit("job-1", lines(2), {{"endpoint", "/v1/any"}});
    for (int i = 0; i < 2; ++i) drawn->push_back(seeds.take<std::uint64_t>());
  }
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(first, later);
}

TEST_F(jobs, draw_a_seed_for_each_line_of_our_own_form_that_asks_for_one) {
  std::vector<std::uint64_t> first, later;
  for (auto* drawn : {&first, &later}) {
    head now(folder_, prompts_);
    const std::string asks = R"({"prompt":"A","seed":-1})";
    if (drawn == &first) now.submit("job-1", {asks, asks});
    for (int i = 0; i < 2; ++i) drawn->push_back(now.next().engine.sampling.seed);
  }
  EXPECT_NE(first[0], 0u);
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(first, later);
}

TEST_F(jobs, begin_all_lines_that_there_is_room_for_and_run_then) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(12), {}, "ann");
  for (int i = 0; i < 12; ++i) (void)now.next();
  EXPECT_EQ(now.get("job.get", {{"id", "job-1"}})["state"], "running");
}

TEST_F(jobs, that_wait_for_what_may_pass_hold_no_other_job_up) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.queue.shortest_retry = std::chrono::hours(1); });
  now.submit("job-1", lines(1));
  const auto failed = now.next();
  failed.listener->on_refused({failed.id, "the disk is full", refusal_cause::unavailable, {}});
  now.submit("job-2", {R"({"prompt":"B"})"});
  EXPECT_EQ(now.next().engine.sequence.prompt, letters("B"));
}

TEST_F(jobs, lose_no_output_that_had_not_been_written_when_the_head_was_told_to_end) {
  {
    head before(folder_, prompts_, [](jobs_parts& parts) { parts.record_after = std::chrono::hours(1); });
    before.submit("job-1", lines(1));
    head::answer(before.next());
  }
  head now(folder_, prompts_);
  EXPECT_EQ(now.wait("job-1")["ok"], 1);
  EXPECT_EQ(now.waiting(), 0u) << "it was not answered again";
}

TEST_F(jobs, tell_the_training_desk_once_what_is_left_to_train_and_of_every_change) {
  {
    journal book({.file = folder_.path() / "journal.db"});
    ASSERT_TRUE(book.create_job({"tune", "fine-tune", "", R"({"adapter":"pricing"})", 0}).ok());
    ASSERT_TRUE(book.seal("tune").ok());
    const std::vector<event_record> events{{"metrics", R"({"step":4,"loss":3.5,"trainer":"coach"})"},
                                           {"metrics", R"({"step":4,"validation_loss":3.5,"trainer":"coach"})"},
                                           {"checkpoint", R"({"step":3})"},
                                           {"message", R"({"text":"no step for 30 s"})"}};
    ASSERT_TRUE(book.append_events("tune", events).ok());
  }
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.record_after = std::chrono::milliseconds(1); });
  const auto begun = now.training().take<begin_training>();
  const fine_tune_mark mark = begun.marks.at("tune");
  EXPECT_EQ(mark.step, 4);
  EXPECT_TRUE(mark.is_validation);
  EXPECT_EQ(mark.checkpoint, 3);
  EXPECT_EQ(mark.trainer, "coach");
  ASSERT_EQ(begun.unfinished.size(), 1u);
  EXPECT_EQ(begun.unfinished[0].spec.id, "tune");
  EXPECT_EQ(begun.unfinished[0].state, job_state::queued);
  now.submit("job-1", lines(1));
  head::answer(now.next());
  now.wait("job-1");  // a timer ran
  EXPECT_EQ(now.get("job.cancel", {{"id", "tune"}})["state"], "cancelled");
  EXPECT_EQ(now.training().take<job_changed>().state, job_state::cancelled);
  const auto events = [&] { return now.get("job.events", {{"id", "tune"}})["events"]; };
  EXPECT_EQ(events().back()["data"]["text"], "cancelled");
  const std::size_t told = events().size();
  (void)now.get("job.cancel", {{"id", "tune"}});
  EXPECT_EQ(events().size(), told) << "it was over already";
  EXPECT_EQ(now.training().count<begin_training>(), 0u);
}

TEST_F(jobs, send_no_more_of_outputs_and_events_at_once_than_a_slow_link_passes) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(2));
  for (int i = 0; i < 2; ++i) {
    const auto asked = now.next();
    answer_part part;
    part.text = std::string(300 << 10, 'x');
    part.end = answer_end{"length", 1, {}};
    asked.listener->on_part(std::move(part));
  }
  EXPECT_EQ(now.wait("job-1")["ok"], 2);
  EXPECT_EQ(now.outputs("job-1").size(), 1u);
  now.use([](journal& book) {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(book.append_event("job-1", "message", std::string(60 << 10, 'x')));
  });
  const auto count_events = [&](const json& asked) { return now.get("job.events", asked)["events"].size(); };
  EXPECT_LE(count_events({{"id", "job-1"}}), 8u);
  const std::size_t newest = count_events({{"id", "job-1"}, {"before", INT64_MAX}});
  EXPECT_GT(newest, 50u) << "the HTTP server's, which no link holds up";
  EXPECT_LT(newest, 100u);
}

TEST_F(jobs, tell_the_events_before_one_in_their_order) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(1));
  now.use([](journal& book) {
    for (int i = 0; i < 4; ++i) (void)book.append_event("job-1", "message", "{}");
  });
  const json all = now.get("job.events", {{"id", "job-1"}})["events"];
  ASSERT_GE(all.size(), 4u);
  const json told = now.get("job.events", {{"id", "job-1"}, {"before", all.back()["number"]}, {"limit", 2}});
  ASSERT_EQ(told["events"].size(), 2u);
  EXPECT_EQ(told["events"][0], all[all.size() - 3]);
  EXPECT_EQ(told["events"][1], all[all.size() - 2]);
  EXPECT_EQ(told["has_older"], true);
}

TEST_F(jobs, keeps_so_many_lines_in_flight) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.in_flight = 3; });
  now.submit("job-1", lines(10));
  std::set<std::uint64_t> ids;
  std::vector<begin_request> open;
  for (int i = 0; i < 3; ++i) open.push_back(now.next());
  now.get("job.list", json::object());
  EXPECT_EQ(now.waiting(), 0u);
  for (int i = 0; i < 10; ++i) {
    head::answer(open.front());
    open.erase(open.begin());
    if (i < 7) open.push_back(now.next());
  }
  EXPECT_EQ(now.wait("job-1")["ok"], 10);
}

TEST_F(jobs, keeps_so_many_lines_in_flight_for_each_replica) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.in_flight = 2; });
  const auto post = [&](int replica, bool ready) {
    replica_figures figures;
    figures.ready = ready;
    now.board->post_replica(replica_id(static_cast<std::uint32_t>(replica)), figures);
  };
  post(1, true), post(2, false), post(3, true);
  now.submit("job-1", lines(10));
  std::vector<begin_request> open;
  for (int i = 0; i < 4; ++i) open.push_back(now.next());
  now.get("job.list", json::object());
  EXPECT_EQ(now.waiting(), 0u);
  post(2, true);
  head::answer(open.front());
  for (int i = 0; i < 3; ++i) (void)now.next();
  now.get("job.list", json::object());
  EXPECT_EQ(now.waiting(), 0u);
}

TEST_F(jobs, keeps_so_many_answers_in_flight_however_many_lines_there_may_be) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.answers_in_flight = 2; });
  now.submit("job-1", lines(3));
  const std::vector<begin_request> open{now.next(), now.next()};
  now.get("job.list", json::object());
  EXPECT_EQ(now.waiting(), 0u);
  head::answer(open.front());
  (void)now.next();
}

TEST_F(jobs, of_several_tenants_share_the_lines_in_flight_by_weight) {
  head now(folder_, prompts_, [](jobs_parts& parts) {
    parts.in_flight = 4;
    parts.record_at_once = 1;
  });
  const auto lines_of = [](const char* prompt) { return std::vector<std::string>(8, json{{"prompt", prompt}}.dump()); };
  const auto prompt_of = [](const begin_request& request) { return request.engine.sequence.prompt; };
  now.submit("early", lines_of("A"), {{"weight", 1}}, "one");
  std::vector<begin_request> first;
  for (int i = 0; i < 4; ++i) first.push_back(now.next());
  const sequence_request& of_one = first[0].engine.sequence;
  now.submit("late", lines_of("B"), {{"weight", 3}}, "other");
  now.submit("last", lines_of("C"), {{"weight", 3}}, "other");
  sequence_request of_other;
  for (int i = 0; i < 3; ++i) {
    head::answer(first[to_size(i)]);
    const auto next = now.next();
    EXPECT_EQ(prompt_of(next), letters("B")) << i << ": the other tenant has none, its older job is first";
    of_other = next.engine.sequence;
  }
  head::answer(first[3]);
  EXPECT_EQ(prompt_of(now.next()), letters("A"));
  EXPECT_EQ(of_one.weight, 1u);
  EXPECT_EQ(of_other.weight, 3u);
  EXPECT_NE(of_one.tenant, of_other.tenant);
}

TEST_F(jobs, tries_lines_again_that_found_no_room) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.in_flight = 2; });
  now.submit("job-1", lines(3));
  for (int i = 0; i < 20; ++i) {
    const auto refused = now.next();
    refused.listener->on_refused({refused.id, "full", refusal_cause::full, std::chrono::milliseconds(1)});
  }
  for (int i = 0; i < 3; ++i) head::answer(now.next());
  EXPECT_EQ(now.wait("job-1")["ok"], 3);
}

TEST_F(jobs, gives_a_line_up_that_is_refused_for_good) {
  head now(folder_, prompts_, [](jobs_parts& parts) { parts.queue.most_tries = 3; });
  now.submit("job-1", lines(1));
  const auto bad = now.next();
  bad.listener->on_refused({bad.id, "no such adapter", refusal_cause::bad_input, {}});
  EXPECT_EQ(now.wait("job-1")["failed"], 1);
  EXPECT_EQ(now.outputs("job-1")[0]["error"], "no such adapter");
  EXPECT_FALSE(now.outputs("job-1")[0].contains("code"));
  now.submit("job-2", lines(1));
  for (int i = 0; i < 3; ++i) {
    const auto lost = now.next();
    lost.listener->on_refused({lost.id, "lost", refusal_cause::unavailable, {}});
  }
  EXPECT_EQ(now.wait("job-2")["failed"], 1) << "without a time to come back only so many tries";
}

TEST_F(jobs, tell_an_unknown_adapter_from_other_faults_of_a_line) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(1));
  const auto bad = now.next();
  bad.listener->on_refused({bad.id, "there is none", refusal_cause::bad_input, {}, true});
  EXPECT_EQ(now.wait("job-1")["failed"], 1);
  EXPECT_EQ(now.outputs("job-1")[0]["code"], "model_not_found");
}

TEST_F(jobs, end_when_they_are_cancelled) {
  head now(folder_, prompts_, [](jobs_parts& parts) {
    parts.in_flight = 2;
    parts.record_after = std::chrono::hours(1);
  });
  now.submit("job-1", lines(6));
  const auto first = now.next(), second = now.next();
  head::answer(first);
  EXPECT_EQ(now.get("job.cancel", {{"id", "job-1"}})["state"], "cancelled");
  (void)now.next_end();
  head::answer(second);
  EXPECT_EQ(now.get("job.get", {{"id", "job-1"}})["state"], "cancelled");
  EXPECT_EQ(now.outputs("job-1").size(), 1u) << "what was answered before";
  now.submit("job-2", {R"({"prompt":"B"})"});
  while (now.next().engine.sequence.prompt == letters("n2")) {  // was begun when the first was answered
  }
  EXPECT_EQ(now.waiting(), 0u);
}

TEST_F(jobs, of_training_that_are_over_tell_their_last_loss) {
  head now(folder_, prompts_);
  now.use([](journal& book) {
    EXPECT_TRUE(book.create_job({"tune", "fine-tune", "", "{}", 0}).ok());
    EXPECT_TRUE(book.seal("tune").ok());
    (void)book.append_event("tune", "metrics", R"({"step": 7, "loss": 3.5})");
    (void)book.append_event("tune", "metrics", R"({"step": 8, "loss": 2.5})");
    (void)book.append_event("tune", "metrics", R"({"step": 8, "validation_loss": 2.75})");
    (void)book.append_event("tune", "message", R"({"text": "tune@1 is published"})");
    EXPECT_TRUE(book.succeed("tune", "tune@1").ok());
  });
  const json told = now.get("job.list", json::object())[0];
  EXPECT_EQ(told["loss"], 2.5);
  EXPECT_EQ(told["validation_loss"], 2.75);
  EXPECT_EQ(now.get("job.get", {{"id", "tune"}})["step"], 8);
  EXPECT_EQ(now.get("job.events", {{"id", "tune"}})["job"]["validation_loss"], 2.75) << "to whoever follows it";
}

/// Nobody has posted on the board yet how far they are.
TEST_F(jobs, of_training_that_stand_still_since_the_head_began_tell_how_far_they_are) {
  head now(folder_, prompts_);
  now.use([](journal& book) {
    for (const char* id : {"paused", "queued"}) {
      EXPECT_TRUE(book.create_job({id, "fine-tune", "", "{}", 0}).ok());
      EXPECT_TRUE(book.seal(id).ok());
      (void)book.append_event(id, "metrics", R"({"step": 7, "steps": 20, "loss": 3.5})");
    }
    EXPECT_TRUE(book.pause("paused").ok());
  });
  const json jobs = now.get("job.list", json::object());
  EXPECT_EQ(jobs.size(), 2u);
  for (const json& told : jobs) {
    EXPECT_EQ(told["step"], 7);
    EXPECT_EQ(told["steps"], 20);
    EXPECT_EQ(told["loss"], 3.5);
  }
}

TEST_F(jobs, that_made_a_version_are_over_at_once_with_it) {
  head now(folder_, prompts_);
  inbox seen;
  const auto pointers = [&] {
    now.use([&seen](journal& book) { seen.put(book.load_catalogue().pointers.size()); });
    return seen.take<std::size_t>();
  };
  now.use([](journal& book) {
    EXPECT_TRUE(book.create_job({"tune", "fine-tune", "", "{}", 0}).ok());
    EXPECT_TRUE(book.seal("tune").ok());
  });
  catalogue_records changes;
  changes.pointers.push_back({"pricing", 1, 1, 2});
  const auto succeed = [](journal& book) { EXPECT_TRUE(book.succeed("tune", "pricing@1").ok()); };
  const auto succeed_and_refuse = [&](journal& book) {
    succeed(book);
    throw foreign_error("tune: is another's");
  };
  const auto refused = now.save({1, changes, {}, succeed_and_refuse});
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->error, "tune: is another's");
  EXPECT_EQ(refused.refusal->fault, command_fault::foreign);
  EXPECT_EQ(pointers(), 0u);
  EXPECT_EQ(now.get("job.get", {{"id", "tune"}})["state"], "queued");
  EXPECT_FALSE(now.save({2, changes, {}, succeed}).refusal);
  EXPECT_EQ(pointers(), 1u);
  EXPECT_EQ(now.wait("tune")["state"], "succeeded");
  EXPECT_EQ(now.get("job.cancel", {{"id", "tune"}})["state"], "succeeded") << "it is too late";
}

TEST_F(jobs, of_a_key_that_has_no_room_on_the_disk_have_errors_in_the_place_of_answers) {
  const auto text = lines(3);
  const auto has_little = [&](jobs_parts& parts) {
    parts.in_flight = parts.record_at_once = 1;
    parts.book.reset();  // there is one owner of the file
    parts.book = std::make_shared<journal>(
        journal::options{.file = folder_.path() / "journal.db", .max_tenant_bytes = 3 * text[0].size() + 1});
  };
  head now(folder_, prompts_, has_little);
  now.submit("job-1", text, json::object(), "ann");
  head::answer(now.next());
  EXPECT_EQ(now.wait("job-1")["failed"], 2) << "the first answer took what was left";
  EXPECT_EQ(now.outputs("job-1")[1]["code"], "insufficient_quota");
  const json spec{{"id", "job-2"}, {"lines", 1}, {"tenant", "ann"}};
  now.get("job.create", spec);
  EXPECT_EQ(now.run("job.lines", {{"id", "job-2"}, {"first", 0}, {"lines", {text[0]}}}).fault, command_fault::full);
  now.submit("job-3", text, json::object(), "bob");
  head::answer(now.next());
}

TEST_F(jobs, refuse_bad_commands_in_one_line) {
  head now(folder_, prompts_);
  now.submit("job-1", lines(1));
  for (const auto& [name, arguments] : std::vector<std::pair<std::string, json>>{
           {"job.create", {{"id", "a b"}, {"lines", 1}}},
           {"job.create", {{"id", "x"}}},
           {"job.create", {{"id", "x"}, {"lines", -1}}},
           {"job.create", {{"id", "x"}, {"lines", 1}, {"options", {{"max_tokens", "many"}}}}},
           {"job.create", {{"id", "x"}, {"lines", 1}, {"options", {{"prompt", "x"}}}}},
           {"job.create", {{"id", "job-1"}, {"lines", 5}}},
           {"job.lines", {{"id", "job-1"}, {"first", 0}}},
           {"job.lines", {{"id", "nothing"}, {"first", 0}, {"lines", json::array()}}},
           {"job.get", {{"id", "nothing"}}},
           {"job.get", json::object()},
           {"job.outputs", {{"id", "nothing"}, {"from", 0}}},
           {"job.nonsense", {{"id", "job-1"}}}}) {
    const auto refused = now.run(name, arguments);
    EXPECT_NE(refused.error, "") << name << arguments;
    const bool names_nothing = arguments.value("id", "") == "nothing";
    EXPECT_EQ(refused.fault, names_nothing ? command_fault::unknown : command_fault::bad_input) << name << arguments;
    EXPECT_EQ(refused.error.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::test
