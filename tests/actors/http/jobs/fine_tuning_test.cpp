#include "actors/training/training_spec.hpp"
#include "tests/actors/http/fixture.hpp"

namespace troupe::test {
namespace {

class fine_tuning : public api_test {
 protected:
  std::string upload_data(const std::string& text) { return upload("fine-tune", text, "d.jsonl"); }
  /// The journal's word of a job.
  static std::string job(const std::string& id, const std::string& state, const json& more = json::object()) {
    json made{{"id", id},
              {"kind", "fine-tune"},
              {"state", state},
              {"created", 5},
              {"finished", 0},
              {"number", 1},
              {"options", {{"adapter", "sums"}, {"epochs", 2}, {"batch", 8}, {"lr", 2e-4}, {"seed", 3}}}};
    made.update(more);
    return made.dump();
  }
};

TEST_F(fine_tuning, an_adapter_without_a_name_is_called_by_the_whole_id_of_its_job) {
  auto made =
      post("/v1/fine_tuning/jobs", {{"model", "letters"}, {"training_file", upload_data("{\"text\":\"abc\"}\n")}});
  auto call = training_.take<command_call>();
  const json order = json::parse(call.command.arguments);
  const auto id = order["id"].get<std::string>();
  ASSERT_EQ(id.size(), 30u) << "ftjob- and 24 digits";
  EXPECT_EQ(order["options"]["adapter"], "ft-" + id.substr(6));
  EXPECT_EQ(order["options"]["epochs"], 3) << "as docs/API.md has what is left out";
  EXPECT_EQ(order["options"]["lr"], 1e-4);
  call.answer({"{}"});
  jobs_.take<command_call>().answer({job(id, "queued")});
  EXPECT_EQ(made.get().parsed()["id"], id);
}

TEST_F(fine_tuning, a_job_is_made_of_a_file) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  auto made =
      post("/v1/fine_tuning/jobs",
           {{"model", "letters"},
            {"training_file", file},
            {"suffix", "sums"},
            {"seed", 3},
            {"metadata", {{"who", "me"}}},
            {"method",
             {{"type", "supervised"},
              {"supervised",
               {{"hyperparameters", {{"n_epochs", 2}, {"batch_size", 8}, {"learning_rate_multiplier", 2}}}}}}}});
  auto call = training_.take<command_call>();
  EXPECT_EQ(call.command.name, "train.create");
  const json order = json::parse(call.command.arguments);
  EXPECT_EQ(order["data_file"], file);
  EXPECT_EQ(order["options"]["adapter"], "sums");
  EXPECT_EQ(order["options"]["data"], "d.jsonl");
  EXPECT_EQ(order["options"]["epochs"], 2);
  EXPECT_EQ(order["options"]["lr"], 2e-4);
  call.answer({"{}"});
  auto asked = jobs_.take<command_call>();
  EXPECT_EQ(asked.command.name, "job.get");
  asked.answer({job(order["id"], "queued")});
  const json got = made.get().parsed();
  EXPECT_EQ(got["object"], "fine_tuning.job");
  EXPECT_EQ(got["id"], order["id"]);
  EXPECT_EQ(got["status"], "queued");
  EXPECT_EQ(got["training_file"], file);
  EXPECT_EQ(got["metadata"]["who"], "me");
  EXPECT_EQ(got["hyperparameters"]["n_epochs"], 2);
  EXPECT_EQ(got["hyperparameters"]["learning_rate_multiplier"], 2);
  EXPECT_TRUE(got["fine_tuned_model"].is_null());
  EXPECT_EQ(ask("GET", "/v1/batches/" + got["id"].get<std::string>()).get().status, 404) << "it is no batch";
}

TEST_F(fine_tuning, trainers_share_the_rows_of_a_step) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  auto made =
      post("/v1/fine_tuning/jobs",
           {{"model", "letters"}, {"training_file", file}, {"trainers", 2}, {"hyperparameters", {{"batch_size", 6}}}});
  auto call = training_.take<command_call>();
  const json order = json::parse(call.command.arguments);
  EXPECT_EQ(order["options"]["trainers"], 2);
  EXPECT_EQ(order["options"]["accumulate"], 2);
  EXPECT_EQ(order["options"]["batch"], 3);
  call.answer({"{}"});
  jobs_.take<command_call>().answer({job(order["id"], "queued", {{"options", order["options"]}})});
  EXPECT_EQ(made.get().parsed()["hyperparameters"]["batch_size"], 6);
}

TEST_F(fine_tuning, rows_are_as_long_as_the_client_wants_them) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  for (const json& length : {json(4096), json(nullptr)}) {
    auto made = post("/v1/fine_tuning/jobs", {{"model", "letters"}, {"training_file", file}, {"length", length}});
    auto call = training_.take<command_call>();
    const json options = json::parse(call.command.arguments)["options"];
    EXPECT_EQ(options.value("length", json()), length);
    call.answer({{}, "bad", command_fault::bad_input});
    (void)made.get();
  }
}

TEST_F(fine_tuning, the_adapter_is_made_as_the_client_wants_it) {
  const json own{
      {"rank", 4}, {"alpha", 32}, {"dropout", 0.1}, {"targets", {"q_proj", "v_proj"}}, {"schedule", "linear"}};
  json body{{"model", "letters"}, {"training_file", upload_data("{\"text\":\"abc\"}\n")}};
  body.update(own);
  auto made = post("/v1/fine_tuning/jobs", body);
  auto call = training_.take<command_call>();
  const json options = json::parse(call.command.arguments)["options"];
  for (const auto& [key, value] : own.items()) EXPECT_EQ(options.value(key, json()), value) << key;
  (void)read_training_spec(options.dump(), "the fine-tune");
  call.answer({{}, "bad", command_fault::bad_input});
  (void)made.get();
}

TEST_F(fine_tuning, a_job_names_the_base_that_it_was_made_for) {
  json body{{"model", "letters"}, {"training_file", upload_data("{\"text\":\"abc\"}\n")}};
  auto made = post("/v1/fine_tuning/jobs", body);
  training_.take<command_call>().answer({"{}"});
  auto asked = jobs_.take<command_call>();
  const std::string id = json::parse(asked.command.arguments)["id"];
  asked.answer({job(id, "queued")});
  EXPECT_EQ(made.get().parsed()["model"], "letters");
  job_records(folder_.path() / "state" / "files").keep(id, R"({"model":"earlier","training_file":"file-1"})");
  auto again = ask("GET", "/v1/fine_tuning/jobs/" + id);
  jobs_.take<command_call>().answer({job(id, "queued")});
  EXPECT_EQ(again.get().parsed()["model"], "earlier");
}

TEST_F(fine_tuning, names_the_file_that_the_head_refuses) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  auto made = post("/v1/fine_tuning/jobs", {{"model", "letters"}, {"training_file", file}, {"validation_file", file}});
  training_.take<command_call>().answer(
      {.error = "d.jsonl:1: bad", .fault = command_fault::bad_input, .field = "validation_file"});
  const auto refused = made.get();
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.parsed()["error"]["param"], "validation_file");
}

TEST_F(fine_tuning, what_cannot_be_trained_is_refused_by_field) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  const auto refused = [&](const char* key, const json& value, int status) {
    json body{{"model", "letters"}, {"training_file", file}};
    body[key] = value;
    return error_of("/v1/fine_tuning/jobs", body, status)["param"];
  };
  EXPECT_EQ(refused("model", "gpt-4o", 404), "model");
  EXPECT_EQ(refused("training_file", "file-none", 404), "training_file");
  EXPECT_EQ(refused("suffix", "no good name", 400), "suffix");
  EXPECT_EQ(refused("suffix", "letters", 400), "suffix") << "it is the base's";
  EXPECT_EQ(refused("method", {{"type", "dpo"}}, 400), "method");
  EXPECT_EQ(refused("hyperparameters", {{"n_epochs", 0}}, 400), "n_epochs");
  EXPECT_EQ(refused("hyperparameters", {{"n_epochs", 1}, {"rank", 4}}, 400), "rank") << "it stands elsewhere";
  EXPECT_EQ(refused("n_epochs", 3, 400), "n_epochs") << "it stands among the hyperparameters";
  EXPECT_EQ(refused("rank", 0, 400), "rank");
  EXPECT_EQ(refused("alpha", 0, 400), "alpha");
  EXPECT_EQ(refused("dropout", 1, 400), "dropout");
  EXPECT_EQ(refused("targets", {4}, 400), "targets");
  EXPECT_EQ(refused("schedule", "square", 400), "schedule");
  EXPECT_EQ(refused("trainers", 3, 400), "trainers") << "of four rows";
  EXPECT_EQ(refused("length", 1, 400), "length");
  EXPECT_EQ(refused("integrations", json::array({{{"type", "wandb"}}}), 400), "integrations");
  EXPECT_EQ(refused("metadata", {{"who", std::string(513, 'a')}}, 400), "metadata");
  EXPECT_EQ(refused("metadata", {{"who", 5}}, 400), "metadata");
}

TEST_F(fine_tuning, a_hyperparameter_in_a_place_where_it_would_be_ignored_is_refused_by_name) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  const auto error_with = [&](const char* key, const json& value) {
    json body{{"model", "letters"}, {"training_file", file}};
    body[key] = value;
    const json error = error_of("/v1/fine_tuning/jobs", body, 400);
    EXPECT_EQ(error["code"], "unknown_parameter") << key;
    return error;
  };
  for (const char* key : {"epochs",
                          "steps",
                          "lr",
                          "warmup",
                          "rslora",
                          "best",
                          "batch",
                          "accumulate",
                          "held_out",
                          "lora_rank",
                          "learning_rate",
                          "target_modules",
                          "batch_size",
                          "r",
                          "use_rslora",
                          "gradient_accumulation_steps",
                          "per_device_train_batch_size",
                          "train_on_inputs",
                          "max_length",
                          "max_grad_norm",
                          "lr_scheduler_type",
                          "rank_pattern",
                          "alpha_pattern"})
    EXPECT_EQ(error_with(key, 1)["param"], key);
  const json beside = error_with("method", {{"type", "supervised"}, {"hyperparameters", {{"n_epochs", 9}}}});
  EXPECT_EQ(beside["param"], "hyperparameters");
  EXPECT_EQ(beside["message"],
            "method.hyperparameters is unknown: there are type, supervised; hyperparameters stand in "
            "method.supervised.hyperparameters");
  EXPECT_EQ(error_with("method", {{"type", "supervised"}, {"supervised", {{"n_epochs", 9}}}})["param"], "n_epochs");
  EXPECT_EQ(error_with("method", {{"supervised", {{"hyperparameters", {{"lr", 1}}}}}})["param"], "lr");
}

TEST_F(fine_tuning, fields_that_are_null_or_nobody_s_are_taken) {
  auto made = post("/v1/fine_tuning/jobs", {{"model", "letters"},
                                            {"training_file", upload_data("{\"text\":\"abc\"}\n")},
                                            {"learning_rate", nullptr},
                                            {"x_client", "ours"},
                                            {"method", {{"type", "supervised"}, {"dpo", nullptr}}}});
  training_.take<command_call>().answer({{}, "bad", command_fault::bad_input});
  EXPECT_EQ(made.get().status, 400);
}

TEST_F(fine_tuning, data_that_is_refused_is_the_client_s_fault) {
  const std::string file = upload_data("{\"text\":\n");
  auto made = post("/v1/fine_tuning/jobs", {{"model", "letters"}, {"training_file", file}});
  training_.take<command_call>().answer({{}, "d.jsonl:1: line: bad", command_fault::bad_input});
  const answered got = made.get();
  EXPECT_EQ(got.status, 400);
  EXPECT_NE(got.body.find("d.jsonl:1"), std::string::npos);
  EXPECT_EQ(kept_jobs(), 0u) << "nothing is left of it";
}

TEST_F(fine_tuning, an_adapter_of_somebody_else_is_refused_by_its_name) {
  const auto ann = as_key(add_api_key(keys_file(), {.name = "ann"}));
  const auto root = as_key(add_api_key(keys_file(), {.name = "root", .is_admin = true}));
  start();
  http_headers sending = ann;
  sending.insert(sending.end(), form_type.begin(), form_type.end());
  const json file = ask("POST", "/v1/files", form("fine-tune", "{\"text\":\"abc\"}\n"), sending).get().parsed();
  const json body{{"model", "letters"}, {"training_file", file["id"]}, {"suffix", "pricing"}};
  for (const auto& [key, owner] : {std::pair(ann, json("ann")), std::pair(root, json())}) {
    auto made = ask("POST", "/v1/fine_tuning/jobs", body.dump(), key);
    auto call = training_.take<command_call>();
    EXPECT_EQ(json::parse(call.command.arguments)["options"].value("owner", json()), owner);
    EXPECT_TRUE(call.is_wanted());
    call.answer({{}, "the adapter pricing is another's", command_fault::foreign});
    const answered got = made.get();
    EXPECT_EQ(got.status, 403);
    EXPECT_EQ(got.parsed()["error"]["param"], "suffix");
  }
}

TEST_F(fine_tuning, a_job_is_paused_and_told_of) {
  auto asked = ask("POST", "/v1/fine_tuning/jobs/ftjob-1/pause");
  jobs_.take<command_call>().answer({job("ftjob-1", "running")});
  auto pausing = jobs_.take<command_call>();
  EXPECT_EQ(pausing.command.name, "job.pause");
  pausing.answer({job("ftjob-1", "paused")});
  jobs_.take<command_call>().answer({job("ftjob-1", "paused")});
  EXPECT_EQ(asked.get().parsed()["status"], "paused");
}

TEST_F(fine_tuning, a_job_that_succeeded_names_its_model) {
  auto asked = ask("GET", "/v1/fine_tuning/jobs/ftjob-1");
  jobs_.take<command_call>().answer(
      {job("ftjob-1", "succeeded", {{"result", "sums@2"}, {"finished", 9}, {"tokens", 700}})});
  const json got = asked.get().parsed();
  EXPECT_EQ(got["trained_tokens"], 700);
  EXPECT_EQ(got["fine_tuned_model"], "sums@2");
  EXPECT_EQ(got["finished_at"], 9);
}

TEST_F(fine_tuning, a_batch_is_no_fine_tuning_job) {
  auto asked = ask("GET", "/v1/fine_tuning/jobs/batch_1");
  const std::string batch = R"({"id":"batch_1","kind":"batch","state":"running"})";
  jobs_.take<command_call>().answer({batch});
  EXPECT_EQ(asked.get().status, 404);
  auto cancelling = ask("POST", "/v1/fine_tuning/jobs/batch_1/cancel");
  const auto call = jobs_.take<command_call>();
  EXPECT_EQ(call.command.name, "job.get") << "before anything is done to it";
  call.answer({batch});
  EXPECT_EQ(cancelling.get().status, 404);
  EXPECT_EQ(jobs_.count<command_call>(), 0u);
  auto events = ask("GET", "/v1/fine_tuning/jobs/batch_1/events");
  jobs_.take<command_call>().answer({R"({"job":)" + batch + R"(,"events":[]})"});
  EXPECT_EQ(events.get().status, 404);
}

TEST_F(fine_tuning, jobs_are_listed_by_pages_of_the_journal) {
  auto asked = ask("GET", "/v1/fine_tuning/jobs?limit=1&after=ftjob-3");
  const auto call = jobs_.take<command_call>();
  const json wanted = json::parse(call.command.arguments);
  EXPECT_EQ(wanted["after"], "ftjob-3");
  EXPECT_EQ(wanted["limit"], 2) << "to know whether there are more";
  call.answer({"[" + job("ftjob-2", "running") + "," + job("ftjob-1", "running") + "]"});
  const json got = asked.get().parsed();
  ASSERT_EQ(got["data"].size(), 1u);
  EXPECT_EQ(got["data"][0]["id"], "ftjob-2");
  EXPECT_EQ(got["has_more"], true);
}

TEST_F(fine_tuning, jobs_of_so_many_steps_do_not_say_how_many_epochs_those_are) {
  auto asked = ask("GET", "/v1/fine_tuning/jobs/ftjob-1");
  jobs_.take<command_call>().answer({job("ftjob-1", "running", {{"options", {{"steps", 9}, {"epochs", 1}}}})});
  const json got = asked.get().parsed();
  EXPECT_EQ(got["hyperparameters"]["n_epochs"], "auto");
  EXPECT_TRUE(got["trained_tokens"].is_null());
}

TEST_F(fine_tuning, jobs_are_listed_by_their_metadata) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  std::vector<std::string> made;
  for (const char* who : {"me", "you"}) {
    auto making =
        post("/v1/fine_tuning/jobs", {{"model", "letters"}, {"training_file", file}, {"metadata", {{"who", who}}}});
    training_.take<command_call>().answer({"{}"});
    auto asked = jobs_.take<command_call>();
    made.push_back(json::parse(asked.command.arguments)["id"]);
    asked.answer({job(made.back(), "queued")});
    (void)making.get();
  }
  const std::string all = "[" + job(made[1], "queued") + "," + job(made[0], "queued") + "]";
  const auto listed = [&](const std::string& query) {
    auto asked = ask("GET", "/v1/fine_tuning/jobs?" + query);
    jobs_.take<command_call>().answer({all});
    jobs_.take<command_call>().answer({"[]"});  // a page with options may be a short one
    const json got = asked.get().parsed();
    std::vector<std::string> ids;
    for (const json& each : got["data"]) ids.push_back(each["id"]);
    return ids;
  };
  EXPECT_EQ(listed("metadata[who]=me"), std::vector{made[0]});
  EXPECT_EQ(listed("metadata%5Bwho%5D=you"), std::vector{made[1]});
  EXPECT_TRUE(listed("metadata[who]=me&metadata[what]=it").empty());
  EXPECT_TRUE(listed("metadata=null").empty());
}

TEST_F(fine_tuning, events_come_newest_first_by_pages) {
  auto asked = ask("GET", "/v1/fine_tuning/jobs/ftjob-1/events?limit=2");
  const json page{
      {"job", json::parse(job("ftjob-1", "running"))},
      {"events",
       {{{"number", 1}, {"at", 5}, {"kind", "message"}, {"data", {{"level", "info"}, {"text", "accepted"}}}},
        {{"number", 2}, {"at", 6}, {"kind", "metrics"}, {"data", {{"step", 1}, {"loss", 2.5}, {"accuracy", 0.5}}}},
        {{"number", 3}, {"at", 7}, {"kind", "checkpoint"}, {"data", {{"step", 1}}}}}},
      {"has_older", false}};
  jobs_.take<command_call>().answer({page.dump()});
  const json got = asked.get().parsed();
  EXPECT_EQ(got["has_more"], true);
  ASSERT_EQ(got["data"].size(), 2u);
  EXPECT_EQ(got["data"][1]["type"], "metrics");
  EXPECT_EQ(got["data"][1]["data"]["train_loss"], 2.5);
  auto behind = ask("GET", "/v1/fine_tuning/jobs/ftjob-1/events?after=none");
  jobs_.take<command_call>().answer({page.dump()});
  EXPECT_EQ(behind.get().parsed()["error"]["param"], "after");
  auto checkpoints = ask("GET", "/v1/fine_tuning/jobs/ftjob-1/checkpoints");
  jobs_.take<command_call>().answer({page.dump()});
  const json checkpoint = checkpoints.get().parsed()["data"][0];
  EXPECT_EQ(checkpoint["step_number"], 1);
  EXPECT_EQ(checkpoint["metrics"], json({{"step", 1}, {"train_loss", 2.5}, {"train_mean_token_accuracy", 0.5}}));
}

TEST_F(fine_tuning, a_checkpoint_has_the_same_name_before_and_after_the_end_of_its_job) {
  json list = json::array();
  list.push_back({{"number", 1}, {"at", 5}, {"kind", "checkpoint"}, {"data", {{"step", 7}}}});
  const auto name_in = [&](const std::string& shown) {
    auto asked = ask("GET", "/v1/fine_tuning/jobs/ftjob-1/checkpoints");
    jobs_.take<command_call>().answer(
        {json{{"job", json::parse(shown)}, {"events", list}, {"has_older", false}}.dump()});
    return asked.get().parsed()["data"][0]["fine_tuned_model_checkpoint"].get<std::string>();
  };
  EXPECT_EQ(name_in(job("ftjob-1", "running", {{"name", "sums"}, {"adapter", "sums"}})), "sums:ckpt-step-7");
  EXPECT_EQ(name_in(job("ftjob-1", "cancelled", {{"name", "sums"}})), "sums:ckpt-step-7");
  EXPECT_EQ(name_in(job("ftjob-1", "done", {{"name", "sums"}, {"result", "sums@1"}})), "sums:ckpt-step-7");
}

TEST_F(fine_tuning, checkpoints_are_found_among_very_many_events) {
  const auto events = [&](int first, int last, bool has_older) {
    json list = json::array();
    for (int i = first; i <= last; ++i)
      list.push_back({{"number", i},
                      {"at", 5},
                      {"kind", i % 100 == 0 ? "checkpoint" : "metrics"},
                      {"data", {{"step", i}, {"loss", 0.5}, {"accuracy", 0.5}}}});
    return json{{"job", json::parse(job("ftjob-1", "running"))}, {"events", list}, {"has_older", has_older}}.dump();
  };
  auto asked = ask("GET", "/v1/fine_tuning/jobs/ftjob-1/checkpoints");
  jobs_.take<command_call>().answer({events(101, 250, true)});
  auto older = jobs_.take<command_call>();
  const std::uint64_t before = json::parse(older.command.arguments)["before"];
  EXPECT_GT(before, 101u) << "some come again, whose figures lie before them";
  older.answer({events(1, static_cast<int>(before) - 1, false)});
  const json got = asked.get().parsed();
  ASSERT_EQ(got["data"].size(), 2u);
  EXPECT_EQ(got["has_more"], false);
  EXPECT_EQ(got["data"][0]["step_number"], 200);
  EXPECT_EQ(got["data"][1]["step_number"], 100);
  EXPECT_EQ(got["data"][1]["metrics"]["train_loss"], 0.5);
}

/// Otherwise a client that asks for what comes behind an id gets the same again and again.
TEST_F(fine_tuning, a_checkpoint_that_an_earlier_build_wrote_down_twice_is_shown_once) {
  json list = json::array();
  for (const int step : {5, 10, 10, 5, 10, 15})
    list.push_back({{"number", list.size() + 1}, {"at", 5}, {"kind", "checkpoint"}, {"data", {{"step", step}}}});
  auto asked = ask("GET", "/v1/fine_tuning/jobs/ftjob-1/checkpoints");
  jobs_.take<command_call>().answer(
      {json{{"job", json::parse(job("ftjob-1", "running"))}, {"events", list}, {"has_older", false}}.dump()});
  const json got = asked.get().parsed();
  std::vector<int> steps;
  for (const json& each : got["data"]) steps.push_back(each["step_number"]);
  EXPECT_EQ(steps, (std::vector{15, 10, 5}));
}

TEST_F(fine_tuning, ten_checkpoints_are_a_page) {
  json list = json::array();
  for (int i = 1; i <= 12; ++i)
    list.push_back({{"number", i}, {"at", 5}, {"kind", "checkpoint"}, {"data", {{"step", i}}}});
  auto asked = ask("GET", "/v1/fine_tuning/jobs/ftjob-1/checkpoints");
  jobs_.take<command_call>().answer(
      {json{{"job", json::parse(job("ftjob-1", "running"))}, {"events", list}, {"has_older", false}}.dump()});
  const json got = asked.get().parsed();
  EXPECT_EQ(got["data"].size(), 10u);
  EXPECT_EQ(got["has_more"], true);
}

TEST_F(fine_tuning, hyperparameters_may_stand_beside_the_method) {
  const std::string file = upload_data("{\"text\":\"abc\"}\n");
  json body{{"model", "letters"},
            {"training_file", file},
            {"method", {{"type", "supervised"}}},
            {"hyperparameters", {{"n_epochs", 7}}}};
  auto made = post("/v1/fine_tuning/jobs", body);
  auto call = training_.take<command_call>();
  EXPECT_EQ(json::parse(call.command.arguments)["options"]["epochs"], 7);
  call.answer({{}, "full", command_fault::bad_input});
  EXPECT_EQ(made.get().status, 400);
  body["method"]["supervised"] = {{"hyperparameters", {{"n_epochs", 2}}}};
  EXPECT_EQ(error_of("/v1/fine_tuning/jobs", body, 400)["param"], "hyperparameters") << "both are given";
}

}  // namespace
}  // namespace troupe::test
