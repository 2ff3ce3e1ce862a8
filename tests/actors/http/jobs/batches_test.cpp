#include "actors/http/jobs/batch_outputs.hpp"
#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class api_batches : public api_test {
 protected:
  static json line() {
    return {{"custom_id", "one"},
            {"method", "POST"},
            {"url", "/v1/completions"},
            {"body", {{"prompt", "A"}, {"max_tokens", 4}, {"model", "letters"}}}};
  }
  /// What the jobs' actor is told; each is answered with what `answer` makes of it.
  json create(const std::function<command_answer(const client_command&)>& answer) {
    auto creating =
        post("/v1/batches", {{"input_file_id", upload("batch", line().dump())}, {"endpoint", "/v1/completions"}});
    for (const char* name : {"job.create", "job.lines", "job.seal"}) {
      const auto call = jobs_.take<command_call>();
      EXPECT_EQ(call.command.name, name);
      call.answer(answer(call.command));
    }
    return creating.get().parsed();
  }
  json create() {
    return create([](const auto&) { return command_answer{R"({"state":"queued","lines":1,"created":5})"}; });
  }
  void answer_next(const std::string& command, const json& result) {
    const auto call = jobs_.take<command_call>();
    EXPECT_EQ(call.command.name, command);
    call.answer({result.dump()});
  }
  static json page(const std::vector<std::pair<bool, json>>& outputs) {
    json list = json::array();
    for (const auto& [ok, output] : outputs)
      list.push_back({{"index", list.size()}, {"ok", ok}, {"text", output.dump()}});
    return {{"outputs", list}};
  }
  json answered_line() const {
    return {{"index", 0}, {"custom_id", "one"}, {"object", "text_completion"}, {"choices", json::array()}};
  }
  json failed_line() const { return {{"index", 1}, {"custom_id", "two"}, {"error", "too long"}}; }
};

TEST_F(api_batches, run_as_jobs) {
  std::vector<client_command> told;
  const json batch = create([&](const client_command& command) {
    told.push_back(command);
    return command_answer{R"({"state":"queued","lines":1,"created":5})"};
  });
  const json sent = json::parse(json::parse(told[1].arguments)["lines"][0].get<std::string>());
  EXPECT_EQ(sent, line()) << "as it is in the file";
  EXPECT_EQ(json::parse(told[0].arguments)["options"], json({{"endpoint", "/v1/completions"}, {"weight", 1}}));
  EXPECT_EQ(json::parse(told[0].arguments)["name"], "in.jsonl");
  EXPECT_EQ(batch["status"], "in_progress");
  EXPECT_EQ(batch["request_counts"]["total"], 1);
  auto looking = ask("GET", "/v1/batches/" + batch["id"].get<std::string>());
  answer_next("job.get", {{"state", "succeeded"}, {"lines", 1}, {"ok", 1}, {"created", 5}, {"finished", 9}});
  const json done = looking.get().parsed();
  EXPECT_EQ(done["status"], "completed");
  auto reading = ask("GET", "/v1/files/" + done["output_file_id"].get<std::string>() + "/content");
  answer_next("job.outputs", page({{true, answered_line()}, {false, failed_line()}}));
  answer_next("job.outputs", page({}));
  const json result = json::parse(reading.get().body);
  EXPECT_EQ(result["custom_id"], "one");
  EXPECT_EQ(result["response"]["body"], json({{"object", "text_completion"}, {"choices", json::array()}}));
}

TEST_F(api_batches, say_why_they_failed) {
  auto looking = ask("GET", "/v1/batches/" + create()["id"].get<std::string>());
  answer_next("job.get",
              {{"state", "failed"}, {"error", "options: no"}, {"lines", 1}, {"created", 5}, {"finished", 9}});
  const json batch = looking.get().parsed();
  EXPECT_EQ(batch["status"], "failed");
  EXPECT_EQ(batch["errors"]["data"][0]["message"], "options: no");
}

TEST_F(api_batches, leave_nothing_behind_where_they_are_refused) {
  const json refused = create([](const auto&) {
    return command_answer{{}, "too many jobs: end some first", command_fault::bad_input};
  });
  EXPECT_EQ(refused["error"]["message"], "too many jobs: end some first");
  EXPECT_EQ(jobs_.take<command_call>().command.name, "job.forget") << "with the lines that were taken, maybe";
  EXPECT_EQ(kept_jobs(), 0u);
  create();
  EXPECT_EQ(kept_jobs(), 1u);
}

/// A client that reads when it is told to, or has gone.
class slow_exchange final : public http_exchange {
 public:
  explicit slow_exchange(bool is_there) : is_there_(is_there) {}

  void reply(http_response) override { ADD_FAILURE() << "it is a stream"; }
  void begin_stream(http_response head) override { EXPECT_EQ(head.status, 200); }
  bool send(std::string_view piece) override {
    heard.put(std::string(piece));
    return is_there_;
  }
  void on_sent(std::function<void()> then) override { heard.put(std::move(then)); }
  void end_stream() override { heard.put(true); }
  void on_gone(std::function<void()>) override {}
  bool is_gone() const override { return has_gone; }
  const std::string& id() const override { return id_; }

  inbox heard;
  bool has_gone = false;

 private:
  bool is_there_;
  std::string id_;
};

TEST_F(api_batches, have_outputs_that_come_as_the_client_reads_them) {
  const std::string id = create()["id"];
  const auto context = std::make_shared<api_context>(parts());
  const batch_file answers{.batch = id, .errors = false};
  const auto reader = std::make_shared<slow_exchange>(true), gone = std::make_shared<slow_exchange>(false);
  const auto request = std::make_shared<const http_request>();
  send_batch_file({.context = context, .request = request, .exchange = reader}, answers);
  answer_next("job.outputs", page({{true, answered_line()}}));
  EXPECT_EQ(json::parse(reader->heard.take<std::string>())["custom_id"], "one");
  const auto has_read = reader->heard.take<std::function<void()>>();
  EXPECT_EQ(jobs_.count<command_call>(), 0u) << "while the client has not read the first page";
  has_read();
  const auto second = jobs_.take<command_call>();
  EXPECT_EQ(json::parse(second.command.arguments)["from"], 1) << "the line after it";
  second.answer({page({}).dump()});
  EXPECT_TRUE(reader->heard.take<bool>());

  send_batch_file({.context = context, .request = request, .exchange = gone}, answers);
  answer_next("job.outputs", page({{true, answered_line()}}));
  EXPECT_TRUE(is_soon([&] { return gone.use_count() == 1; })) << "nobody reads any more for who has gone";
  EXPECT_EQ(jobs_.count<command_call>(), 0u);
  context->file_work->stop();
}

TEST_F(api_batches, are_not_read_for_who_has_gone_when_their_turn_comes) {
  const auto context = std::make_shared<api_context>(parts());
  const auto gone = std::make_shared<slow_exchange>(false), reader = std::make_shared<slow_exchange>(true);
  std::string read_for;
  std::promise<void> last;
  {
    busy_thread busy(*context->file_work);
    guarded_later(*context->file_work, "ann", gone, [&] { read_for += "gone"; });
    guarded_later(*context->file_work, "ann", reader, [&] {
      read_for += "reader";
      last.set_value();
    });
    gone->has_gone = true;
  }
  last.get_future().wait();
  EXPECT_EQ(read_for, "reader");
}

TEST_F(api_batches, are_read_in_turns_of_their_keys) {
  std::map<std::string, http_headers> headers;
  for (const char* name : {"ann", "bob"}) {
    const std::string key = add_api_key(keys_file(), {.name = name});
    headers[name] = as_key(key);
  }
  start();
  const auto file_of = [&](const std::string& key) -> std::string {
    http_headers sending = headers[key];
    sending.insert(sending.end(), form_type.begin(), form_type.end());
    return ask("POST", "/v1/files", form("batch", line().dump()), sending).get().parsed()["id"];
  };
  std::vector<std::future<answered>> asked;
  const auto create = [&](const std::string& key, const std::string& file) {
    const json batch{{"input_file_id", file}, {"endpoint", "/v1/completions"}};
    asked.push_back(ask("POST", "/v1/batches", batch.dump(), headers[key]));
    EXPECT_TRUE(is_soon([&] { return file_work_->waiting() == asked.size(); }));
  };
  const std::string of_ann = file_of("ann"), of_bob = file_of("bob");
  {
    busy_thread busy(*file_work_);
    create("ann", of_ann);
    create("ann", of_ann);
    create("bob", of_bob);
  }
  for (const char* key : {"ann", "bob", "ann"}) {
    EXPECT_EQ(json::parse(jobs_.take<command_call>().command.arguments)["tenant"], key);
    for (int further = 0; further < 2; ++further) (void)jobs_.take<command_call>();
  }
  front_.reset();
}

TEST_F(api_batches, have_outputs_with_a_size_and_a_time) {
  const std::string id = create()["id"], output = "file-output-" + id, errors = "file-errors-" + id;
  const json job{{"id", id}, {"ok", 1}, {"failed", 1}, {"created", 5}, {"finished", 9}};
  auto reading = ask("GET", "/v1/files/" + output + "/content");
  answer_next("job.outputs", page({{true, answered_line()}, {false, failed_line()}}));
  answer_next("job.outputs", page({}));
  const std::size_t bytes = reading.get().body.size();
  auto listing = ask("GET", "/v1/files");
  answer_next("job.list", json::array({job}));
  answer_next("job.outputs", page({{true, answered_line()}, {false, failed_line()}}));
  answer_next("job.outputs", page({}));
  const json list = listing.get().parsed()["data"];
  ASSERT_EQ(list.size(), 3u) << "and the one that was uploaded";
  const auto described = [&](const std::string& which) {
    for (const json& each : list)
      if (each["id"] == which) return each;
    return json();
  };
  EXPECT_EQ(described(output)["bytes"], bytes);
  EXPECT_EQ(described(output)["created_at"], 9);
  EXPECT_EQ(described(output)["purpose"], "batch_output");
  EXPECT_GT(described(errors)["bytes"], 0);
  auto asked = ask("GET", "/v1/files/" + errors);
  answer_next("job.get", job);
  EXPECT_EQ(asked.get().parsed(), described(errors)) << "which is known by now";
  auto deleting = ask("DELETE", "/v1/files/" + errors);
  answer_next("job.get", job);
  const answered kept = deleting.get();
  EXPECT_EQ(kept.status, 400);
  EXPECT_EQ(kept.parsed()["error"]["param"], "id");
  EXPECT_NE(kept.body.find("troupe jobs forget " + id), std::string::npos) << kept.body;
  EXPECT_EQ(ask("DELETE", "/v1/files/file-output-batch_none").get().status, 404);
  EXPECT_EQ(ask("GET", "/v1/files/file-output-batch_none").get().status, 404);
}

TEST_F(api_batches, have_outputs_whose_sizes_are_read_once) {
  const std::string id = create()["id"];
  const json job{{"id", id}, {"ok", 1}, {"failed", 0}, {"created", 5}, {"finished", 9}};
  for (const bool is_first : {true, false}) {
    auto listing = ask("GET", "/v1/files?purpose=batch_output");
    answer_next("job.list", json::array({job}));
    if (is_first) {
      answer_next("job.outputs", page({{true, answered_line()}}));
      answer_next("job.outputs", page({}));
    }
    EXPECT_EQ(listing.get().parsed()["data"].size(), 1u);
    std::filesystem::remove(folder_.path() / "state" / "files" / (id + ".job"));
  }
}

TEST_F(api_batches, have_outputs_that_are_measured_for_the_page_that_shows_them) {
  const std::string older = create()["id"], newer = create()["id"];
  const auto ended = [](const std::string& id, int lines, int when) {
    return json{{"id", id}, {"ok", lines}, {"failed", 0}, {"created", 5}, {"finished", when}};
  };
  const auto page_of = [&](const std::string& query, const json& jobs, bool is_measured) {
    auto listing = ask("GET", "/v1/files?purpose=batch_output" + query);
    answer_next("job.list", jobs);
    if (is_measured) {
      answer_next("job.outputs", page({{true, answered_line()}}));
      answer_next("job.outputs", page({}));
    }
    return listing.get().parsed();
  };
  const json jobs = json::array({ended(newer, 1, 9), ended(older, 1, 8)});
  const json first = page_of("&limit=1", jobs, true);
  ASSERT_EQ(first["data"].size(), 1u);
  EXPECT_EQ(first["data"][0]["id"], "file-output-" + newer);
  EXPECT_EQ(page_of("&limit=1", jobs, false), first) << "and only once";
  const json second = page_of("&after=" + first["last_id"].get<std::string>(), jobs, true);
  EXPECT_EQ(second["data"][0]["id"], "file-output-" + older);
  EXPECT_EQ(second["has_more"], false);
}

TEST_F(api_batches, have_outputs_of_which_a_page_shows_fewer_where_measuring_them_takes_long) {
  const std::string older = create()["id"], newer = create()["id"];
  const auto ended = [](const std::string& id, int when) {
    return json{{"id", id}, {"ok", 100'000}, {"failed", 0}, {"created", 5}, {"finished", when}};
  };
  std::string after;
  for (const std::string& shown : {newer, older}) {
    auto listing = ask("GET", "/v1/files?purpose=batch_output&after=" + after);
    answer_next("job.list", json::array({ended(newer, 9), ended(older, 8)}));
    answer_next("job.outputs", page({{true, answered_line()}}));
    answer_next("job.outputs", page({}));
    const json list = listing.get().parsed();
    ASSERT_EQ(list["data"].size(), 1u);
    EXPECT_EQ(list["data"][0]["id"], "file-output-" + shown);
    EXPECT_EQ(list["has_more"], shown == newer) << "the client asks for the next page";
    after = list["last_id"];
  }
}

TEST_F(api_batches, are_listed_by_pages_of_the_journal) {
  const std::string first = create()["id"], second = create()["id"];
  const auto job_of = [](const std::string& id) { return json{{"id", id}, {"state", "running"}, {"created", 5}}; };
  auto listing = ask("GET", "/v1/batches?limit=1&after=batch_x");
  auto call = jobs_.take<command_call>();
  json wanted = json::parse(call.command.arguments);
  EXPECT_EQ(wanted["after"], "batch_x");
  json others = json::array();
  for (std::size_t i = 0; i < wanted["limit"].get<std::size_t>(); ++i)
    others.push_back(job_of("other-" + std::to_string(i)));
  others.back()["number"] = 7;
  EXPECT_LT(others.size(), 1000u);
  call.answer({others.dump()});
  call = jobs_.take<command_call>();
  wanted = json::parse(call.command.arguments);
  EXPECT_EQ(wanted["below"], 7) << "those were made by no client of this API";
  EXPECT_FALSE(wanted.contains("after")) << "which may be removed by now";
  call.answer({json::array({job_of(second), job_of(first)}).dump()});
  const json list = listing.get().parsed();
  ASSERT_EQ(list["data"].size(), 1u);
  EXPECT_EQ(list["data"][0]["id"], second);
  EXPECT_EQ(list["has_more"], true);
}

TEST_F(api_batches, are_refused_with_the_number_of_a_wrong_line) {
  const std::string bad = R"({"custom_id":"a","url":"/v1/completions","body":{"prompt":"A"}})"
                          "\n\n"
                          R"({"custom_id":"b","url":"/v1/completions","body":{"prompt":"A","temperature":-1}})";
  const std::string file = upload("batch", bad);
  const json error = error_of("/v1/batches", {{"input_file_id", file}, {"endpoint", "/v1/completions"}}, 400);
  EXPECT_NE(error["message"].get<std::string>().find("line 3"), std::string::npos) << error.dump();
  EXPECT_EQ(error_of("/v1/batches", {{"input_file_id", "file-x"}, {"endpoint", "/v1/completions"}}, 404)["param"],
            "input_file_id");
}

TEST_F(api_batches, have_outputs_that_are_not_read_for_their_head_alone) {
  const std::string id = create()["id"];
  const auto context = std::make_shared<api_context>(parts());
  http_request head;
  head.method = "HEAD";
  const auto request = std::make_shared<const http_request>(head);
  const auto reader = std::make_shared<slow_exchange>(true);
  send_batch_file({.context = context, .request = request, .exchange = reader}, {.batch = id, .errors = true});
  answer_next("job.outputs", page({{true, answered_line()}}));
  EXPECT_TRUE(reader->heard.take<bool>()) << "it has ended";
  EXPECT_EQ(jobs_.count<command_call>(), 0u);
  context->file_work->stop();
}

}  // namespace
}  // namespace troupe::test
