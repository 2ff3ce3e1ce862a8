#include "actors/adapters/adapter_store.hpp"

#include "actors/command_answers.hpp"
#include "cluster/journal/journal.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "tests/actors/support.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/transport/zmq/peer.hpp"

namespace troupe::test {
namespace {

class store : public testing::Test {
 protected:
  explicit store(duration longest_spread = std::chrono::minutes(1)) {
    const auto shelf = std::make_shared<adapter_shelf>(
        adapter_shelf::options{folder_.path() / "store", golden / "llama", read_hf_config(golden / "llama"),
                               model_id(7), "letters"},
        catalogue_records{});
    actor_ = spawn_adapter_store(system_, {.shelf = shelf,
                                           .jobs = journal_.handle(),
                                           .links = &wire_,
                                           .directory = directory_,
                                           .adapters = adapters_,
                                           .board = board_,
                                           .longest_spread = longest_spread,
                                           .say = [to = said_](const std::string& line) { to->put(line); }});
    wire_.on<want_piece>([to = actor_](incoming<want_piece> in) { tell(to, std::move(in)); });
    wire_.start();
  }
  ~store() override {
    tell(actor_, stop_now{});
    wire_.stop();
  }

  void command(const std::string& name, const json& arguments) {
    tell(actor_, command_call{{name, arguments.dump()},
                              [to = answers_](command_answer answer) { to->put(std::move(answer)); }});
  }
  void saved(const std::optional<command_answer>& refusal = {}) {
    const auto wanted = journal_.take<save_catalogue>();
    tell(wanted.asker, catalogue_saved{wanted.ticket, refusal});
  }
  /// The answer to a remote worker that asks for the beginning of a file.
  adapter_piece fetch(const std::string& sha256, const std::string& file) {
    peer worker;
    frame wanted = to_frame(want_piece{sha256, file, 0});
    wanted.correlation = 9;
    worker->send(worker->connect(wire_.endpoint()), std::move(wanted));
    EXPECT_TRUE(worker.wait_frames(1));
    frame got = worker.frames().at(0).second;
    EXPECT_EQ(got.correlation, 9u);
    return from_frame<adapter_piece>(std::move(got)).value_or(adapter_piece{});
  }
  command_answer answer() { return answers_->take<command_answer>(); }

  temp_folder folder_;
  std::shared_ptr<inbox> said_ = std::make_shared<inbox>();
  std::shared_ptr<inbox> answers_ = std::make_shared<inbox>();
  std::shared_ptr<adapter_directory> adapters_ = std::make_shared<adapter_directory>();
  std::shared_ptr<status_board> board_ = std::make_shared<status_board>();
  std::shared_ptr<replica_directory> directory_ = std::make_shared<replica_directory>();
  wire wire_{peer::listening()};
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<jobs_actor> journal_{system_};
  adapter_store_actor actor_;
};

TEST_F(store, takes_no_path_that_the_system_would_take_for_another) {
  command("adapters.load", {{"name", "x"}, {"path", std::string("x\0y", 3)}});
  const command_answer refused = answer();
  EXPECT_EQ(refused.fault, command_fault::bad_input);
  EXPECT_NE(refused.error.find("NUL"), std::string::npos) << refused.error;
}

TEST_F(store, tells_those_outside_of_a_full_disk_without_its_path) {
  command_answer refused;
  {
    const full_disk full(0);
    command("adapters.load", {{"name", "adapter"}});
    refused = answer();
  }
  EXPECT_NE(refused.error.find((folder_.path() / "store").string()), std::string::npos) << refused.error;
  EXPECT_EQ(refused.error_outside, "the server's disk is full");
  command("adapters.load", {{"name", "adapter"}});
  saved(journal_failed("journal /srv/journal.db: disk I/O error"));
  EXPECT_EQ(answer().error_outside, "the server cannot write to its journal");
}

TEST_F(store, publishes_a_version_when_every_worker_has_it) {
  mock<worker_actor> first(system_), second(system_);
  directory_->set_worker("w0", first.handle());
  directory_->set_worker("w1", second.handle());
  command("adapters.load", {{"name", "adapter"}});
  const auto wanted = first.take<prepare_adapter>();
  EXPECT_EQ(wanted.files.size(), 2u);
  EXPECT_EQ(second.take<prepare_adapter>().ticket, wanted.ticket);
  tell(actor_, adapter_prepared{wanted.ticket, {}});
  // Its pieces can be fetched before requests can name the version.
  EXPECT_EQ(fetch(wanted.sha256, "adapter_config.json").error, "");
  EXPECT_EQ(journal_.count<save_catalogue>(), 0u);
  tell(actor_, adapter_prepared{wanted.ticket, {}});
  saved();
  EXPECT_EQ(json::parse(answer().result)["adapter"], "adapter@1");
}

TEST_F(store, sends_no_worker_what_has_been_a_version_before) {
  mock<worker_actor> worker(system_);
  const auto folder = (golden / "llama" / "adapter").string();
  command("adapters.load", {{"name", "pricing"}, {"path", folder}});
  saved();
  (void)answer();
  directory_->set_worker("w0", worker.handle());
  command("adapters.load", {{"name", "margins"}, {"path", folder}});
  saved();
  EXPECT_EQ(json::parse(answer().result)["adapter"], "margins@1");
  EXPECT_EQ(worker.count<prepare_adapter>(), 0u);
}

TEST_F(store, answers_what_came_while_something_else_was_written) {
  command("adapters.load", {{"name", "adapter"}});
  const auto first = journal_.take<save_catalogue>();
  command("adapters.unload", {{"name", "adapter"}});
  tell(actor_, catalogue_saved{first.ticket, {}});
  EXPECT_EQ(json::parse(answer().result)["adapter"], "adapter@1");
  saved();
  EXPECT_EQ(json::parse(answer().result)["unloaded"][0], "adapter@1");
}

TEST_F(store, publishes_what_was_trained_and_says_which_version_it_became) {
  const auto listen = [to = answers_](const adapter_published& made) { to->put(made); };
  tell(actor_, publish_adapter{"adapter", folder_.path() / "none", listen});
  EXPECT_NE(answers_->take<adapter_published>().error, "");
  tell(actor_, publish_adapter{"pricing", golden / "llama" / "adapter", listen});
  saved();
  const auto made = answers_->take<adapter_published>();
  EXPECT_EQ(made.full_name, "pricing@1");
  EXPECT_EQ(made.error, "");
}

TEST_F(store, what_nobody_wants_any_more_becomes_no_version) {
  const auto listen = [to = answers_](const adapter_published& made) { to->put(made); };
  tell(actor_, publish_adapter{"pricing", golden / "llama" / "adapter", listen, [] { return false; }});
  EXPECT_NE(answers_->take<adapter_published>().error, "");
  EXPECT_FALSE(adapters_->resolve("pricing"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path() / "store"));
}

TEST_F(store, has_written_together_with_a_version_what_belongs_to_it) {
  const auto listen = [to = answers_](const adapter_published& made) { to->put(made); };
  const auto publish = [&] {
    tell(actor_, publish_adapter{"pricing", golden / "llama" / "adapter", listen, [] { return true; },
                                 [to = said_](journal&, const std::string& version) { to->put("with " + version); }});
    return journal_.take<save_catalogue>();
  };
  journal book({.file = folder_.path() / "journal.db"});
  const auto first = publish();
  ASSERT_TRUE(first.together_with);
  first.together_with(book);
  EXPECT_EQ(said_->take<std::string>(), "with pricing@1");
  tell(actor_, catalogue_saved{first.ticket, {{.error = "it is another's", .fault = command_fault::foreign}}});
  const auto refused = answers_->take<adapter_published>();
  EXPECT_EQ(refused.error, "it is another's");
  EXPECT_EQ(refused.fault, command_fault::foreign);
  EXPECT_FALSE(adapters_->resolve("pricing"));
  const auto second = publish();
  tell(actor_, catalogue_saved{second.ticket, {}});
  EXPECT_EQ(answers_->take<adapter_published>().full_name, "pricing@1");
  const auto again = publish();
  EXPECT_TRUE(again.changes.empty()) << "the same contents";
  EXPECT_TRUE(again.together_with);
  tell(actor_, catalogue_saved{again.ticket, {}});
  EXPECT_EQ(answers_->take<adapter_published>().full_name, "pricing@1");
  EXPECT_TRUE(adapters_->resolve("pricing"));
}

TEST_F(store, a_worker_whose_disk_is_full_keeps_nobody_else_from_a_version) {
  mock<worker_actor> worker(system_);
  directory_->set_worker("w0", worker.handle());
  command("adapters.load", {{"name", "adapter"}});
  tell(actor_, adapter_prepared{worker.take<prepare_adapter>().ticket, "node w0: the disk is full"});
  EXPECT_EQ(said_->take<std::string>(), "adapter adapter: not every node can load it yet: node w0: the disk is full");
  saved();
  EXPECT_EQ(json::parse(answer().result)["adapter"], "adapter@1");
  EXPECT_TRUE(adapters_->resolve("adapter"));
}

TEST_F(store, says_of_every_version_that_a_node_lacks_it_though_the_cause_is_the_same) {
  mock<worker_actor> worker(system_);
  directory_->set_worker("w0", worker.handle());
  const auto folder = golden / "llama" / "adapter";
  std::filesystem::copy(folder, folder_.path() / "pricing");
  for (const char* end : {"", " "}) {
    folder_.write("pricing/adapter_config.json", read_file(folder / "adapter_config.json") + end);
    command("adapters.load", {{"name", "pricing"}, {"path", (folder_.path() / "pricing").string()}});
    tell(actor_, adapter_prepared{worker.take<prepare_adapter>().ticket, "node w0: the disk is full"});
    EXPECT_EQ(said_->take<std::string>(), "adapter pricing: not every node can load it yet: node w0: the disk is full");
    saved();
    EXPECT_EQ(answer().error, "");
    while (said_->count<std::string>() > 0) (void)said_->take<std::string>();  // what became of versions
  }
}

class hasty_store : public store {
 protected:
  hasty_store() : store(std::chrono::milliseconds(50)) {}
};

TEST_F(hasty_store, a_worker_that_says_nothing_holds_nobody_up_for_long) {
  mock<worker_actor> worker(system_);
  directory_->set_worker("w0", worker.handle());
  command("adapters.load", {{"name", "adapter"}});
  worker.take<prepare_adapter>();
  saved();  // after a while
  EXPECT_EQ(json::parse(answer().result)["adapter"], "adapter@1");
}

TEST_F(store, shows_nothing_before_the_journal_has_it) {
  command("adapters.load", {{"name", "adapter"}});
  const auto wanted = journal_.take<save_catalogue>();
  ASSERT_EQ(wanted.changes.entries.size(), 1u);
  EXPECT_EQ(adapters_->resolve("adapter"), std::nullopt);
  EXPECT_EQ(answers_->count<command_answer>(), 0u);
  tell(actor_, catalogue_saved{wanted.ticket, {}});
  EXPECT_EQ(json::parse(answer().result)["adapter"], "adapter@1");
  EXPECT_TRUE(adapters_->resolve("adapter"));
  EXPECT_NE(board_->read("adapters").find("adapter@1"), std::string::npos);
}

TEST_F(store, tells_the_operator_what_became_of_versions) {
  command("adapters.load", {{"name", "adapter"}});
  saved();
  EXPECT_EQ(said_->take<std::string>(), "adapter adapter@1: is ready");
  EXPECT_EQ(said_->take<std::string>(), "adapter adapter: adapter@1 answers");
  command("adapters.unload", {{"name", "adapter"}});
  saved();
  EXPECT_EQ(said_->take<std::string>(), "adapter adapter@1: is unloaded");
  EXPECT_EQ(said_->take<std::string>(), "adapter adapter: no version answers");
}

TEST_F(store, warns_of_adapters_whose_name_is_the_bases_now) {
  command("adapters.load", {{"name", "adapter"}});
  catalogue_records records = journal_.take<save_catalogue>().changes;
  adapter_shelf::options renamed{folder_.path() / "store", golden / "llama", read_hf_config(golden / "llama"),
                                 model_id(7), "adapter"};
  auto shelf = std::make_shared<adapter_shelf>(std::move(renamed), std::move(records));
  EXPECT_EQ(shelf->snapshot().names.at("adapter"), no_adapter) << "however it is asked for";
  EXPECT_NE(shelf->snapshot().names.at("base:adapter"), no_adapter);
  const auto later = spawn_adapter_store(system_, {.shelf = std::move(shelf),
                                                   .jobs = journal_.handle(),
                                                   .links = &wire_,
                                                   .directory = directory_,
                                                   .adapters = adapters_,
                                                   .board = board_,
                                                   .say = [to = said_](const std::string& line) { to->put(line); }});
  EXPECT_EQ(said_->take<std::string>(),
            "adapter adapter: the base is called so too, and answers to it: call the adapter base:adapter, or publish "
            "it under another name");
  tell(later, stop_now{});
}

TEST_F(store, a_change_that_the_journal_could_not_write_has_not_happened) {
  command("adapters.load", {{"name", "adapter"}});
  saved(journal_failed("disk full"));
  EXPECT_EQ(answer().error, "disk full");
  EXPECT_EQ(said_->count<std::string>(), 0u);
  command("adapters.list", json::object());
  EXPECT_EQ(json::parse(answer().result), json::array());
  EXPECT_EQ(journal_.count<save_catalogue>(), 0u);
  EXPECT_EQ(adapters_->resolve("adapter"), std::nullopt);
  command("adapters.load", {{"name", "adapter"}});
  saved();
  EXPECT_EQ(json::parse(answer().result)["adapter"], "adapter@1");
  EXPECT_TRUE(adapters_->resolve("adapter"));
}

TEST_F(store, a_change_that_was_written_stays_when_the_next_one_cannot_be) {
  command("adapters.load", {{"name", "adapter"}});
  saved();
  (void)answer();
  command("adapters.unload", {{"name", "adapter"}});
  saved(journal_failed("disk full"));
  EXPECT_EQ(answer().error, "disk full");
  command("adapters.list", json::object());
  EXPECT_EQ(json::parse(answer().result)[0]["state"], "ready");
  EXPECT_TRUE(adapters_->resolve("adapter"));
}

/// What its own writer refuses takes nothing of others back, and is not taken back with what others could not write.
TEST_F(store, saves_a_version_that_something_is_written_with_alone) {
  const auto published = std::make_shared<inbox>();
  const auto publish = [&](const std::string& name) {
    tell(actor_, publish_adapter{name, golden / "llama" / "adapter",
                                 [published](const adapter_published& made) { published->put(made); },
                                 [] { return true; }, [](journal&, const std::string&) {}});
  };
  command("adapters.load", {{"name", "adapter"}});
  const auto first = journal_.take<save_catalogue>();
  publish("cancelled");
  publish("pricing");
  command("adapters.load", {{"name", "margins"}, {"path", (golden / "llama" / "adapter").string()}});
  tell(actor_, catalogue_saved{first.ticket, journal_failed("disk full")});
  EXPECT_EQ(answer().error, "disk full");
  const command_answer over{.error = "it is over", .fault = command_fault::bad_input};
  for (const auto& refusal : {std::optional(over), std::optional<command_answer>()}) {
    const auto alone = journal_.take<save_catalogue>();
    EXPECT_EQ(alone.changes.entries.size(), 1u);
    EXPECT_TRUE(alone.together_with);
    tell(actor_, catalogue_saved{alone.ticket, refusal});
    EXPECT_EQ(published->take<adapter_published>().error, refusal ? "it is over" : "");
  }
  const auto last = journal_.take<save_catalogue>();
  EXPECT_FALSE(last.together_with);
  tell(actor_, catalogue_saved{last.ticket, {}});
  EXPECT_EQ(json::parse(answer().result)["adapter"], "margins@1");
  EXPECT_FALSE(adapters_->resolve("cancelled"));
  EXPECT_TRUE(adapters_->resolve("pricing"));
}

TEST_F(store, nothing_stays_of_changes_that_were_made_on_one_that_could_not_be_written) {
  command("adapters.load", {{"name", "adapter"}});
  const auto first = journal_.take<save_catalogue>();
  command("adapters.unload", {{"name", "adapter"}});
  command("adapters.list", json::object());
  tell(actor_, catalogue_saved{first.ticket, journal_failed("disk full")});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answer().error, "disk full");
  EXPECT_EQ(journal_.count<save_catalogue>(), 0u);
  command("adapters.list", json::object());
  EXPECT_EQ(json::parse(answer().result), json::array());
}

TEST_F(store, tells_gateways_of_a_full_disk_as_of_what_may_pass) {
  mock<gateway_actor> gateway(system_);
  tell(actor_, find_adapter{"adapter", gateway.handle()});
  saved(journal_failed("disk full"));
  const auto found = gateway.take<adapter_found>();
  EXPECT_EQ(found.error, "disk full");
  EXPECT_TRUE(found.may_pass);
}

TEST_F(store, answers_gateways_that_look_for_a_name) {
  mock<gateway_actor> gateway(system_);
  tell(actor_, find_adapter{"nothing", gateway.handle()});
  const auto nothing = gateway.take<adapter_found>();
  EXPECT_NE(nothing.error, "");
  EXPECT_TRUE(nothing.is_unknown);
  tell(actor_, find_adapter{"adapter", gateway.handle()});
  saved();
  const auto found = gateway.take<adapter_found>();
  EXPECT_EQ(found.error, "");
  EXPECT_EQ(found.name, "adapter");
}

TEST_F(store, shows_nothing_again_that_has_not_changed) {
  mock<gateway_actor> gateway(system_);
  const auto shown_after_a_look = [&] {
    tell(actor_, find_adapter{"nothing", gateway.handle()});
    (void)gateway.take<adapter_found>();
    return adapters_->read().get();
  };
  const auto* before = shown_after_a_look();
  EXPECT_EQ(shown_after_a_look(), before);
}

TEST_F(store, answers_for_its_files) {
  command("adapters.load", {{"name", "adapter"}});
  saved();
  (void)answer();
  command("adapters.files", {{"name", "adapter"}});
  const json files = json::parse(answer().result);
  const auto sha256 = files["sha256"].get<std::string>();
  EXPECT_EQ(fetch(sha256, "adapter_config.json").attachment.size(), files["files"][0]["bytes"]);
}

TEST_F(store, tells_a_name_that_is_not_there_from_a_folder_that_is_not_there) {
  const auto fault_of = [this](const std::string& name, const json& arguments) {
    command(name, arguments);
    return answer().fault;
  };
  for (const char* name : {"adapters.load", "adapters.unload", "adapters.rollback", "adapters.files"})
    EXPECT_EQ(fault_of(name, {{"name", "x"}}), command_fault::unknown) << name;
  for (const char* path : {"/nowhere", "/there is none"})
    EXPECT_EQ(fault_of("adapters.load", {{"name", "x"}, {"path", path}}), command_fault::bad_input) << path;
}

TEST_F(store, refuses_bad_commands_in_one_line) {
  for (const auto& [name, arguments] :
       std::vector<std::pair<std::string, json>>{{"adapters.load", json::object()},
                                                 {"adapters.load", {{"name", 3}}},
                                                 {"adapters.rollback", {{"name", "x"}, {"version", 0}}},
                                                 {"adapters.nonsense", {{"name", "x"}}},
                                                 {"adapters.list", json::array()}}) {
    command(name, arguments);
    const auto refused = answer();
    EXPECT_EQ(refused.fault, command_fault::bad_input) << name << arguments;
    EXPECT_NE(refused.error, "");
    EXPECT_EQ(refused.error.find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace troupe::test
