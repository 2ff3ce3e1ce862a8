#include "actors/adapters/adapter_fetcher.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include "actors/adapters/adapter_files.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/lora/adapter.hpp"
#include "tests/actors/support.hpp"
#include "tests/base/full_disk.hpp"

namespace troupe::test {
namespace {

/// A worker's fetcher; the test plays the head that has the files.
class fetcher : public testing::Test {
 protected:
  explicit fetcher(bool can_fetch = true) : can_fetch_(can_fetch) { start_fetcher(64 << 20); }
  void start_fetcher(std::size_t most_prepared, std::uint64_t most_stored = std::uint64_t{1} << 30) {
    auto model = std::make_shared<loaded_model>();
    model->config = read_hf_config(golden / "llama");
    actor_ = spawn_adapter_fetcher(system_, {.head = head_.handle(),
                                             .model = std::move(model),
                                             .store = folder_.path() / "store",
                                             .most_stored = most_stored,
                                             .most_prepared = most_prepared,
                                             .can_fetch = can_fetch_,
                                             .node = "w0",
                                             .say = [to = said_](const std::string& line) { to->put(line); }});
    tell(actor_, begin_fetching{worker_.handle()});
  }

  /// Two at a time would remove each other's files in work: they bear the number of the process.
  void restart_fetcher(std::size_t most_prepared, std::uint64_t most_stored = std::uint64_t{1} << 30) {
    caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
    ASSERT_TRUE(await_ends(std::chrono::seconds(10), actor_));
    start_fetcher(most_prepared, most_stored);
  }

  /// An adapter whose files have these contents. No version's number is known before all have it.
  static prepare_adapter wanted(std::uint64_t ticket, const std::array<std::string, 2>& contents) {
    prepare_adapter made{ticket, "pricing", {}, {}};
    sha256 digest;
    for (std::size_t i = 0; i < contents.size(); ++i) {
      made.files.push_back({std::string(adapter_file_names[i]), contents[i].size()});
      begin_adapter_file(digest, adapter_file_names[i], contents[i].size());
      digest.add(contents[i]);
    }
    made.sha256 = digest.finish();
    return made;
  }
  /// A stage needs this adapter.
  void ask_for(const prepare_adapter& known) {
    load_adapter order;
    order.full_name = "pricing@1";
    order.sha256 = known.sha256;
    order.files = known.files;
    tell(actor_, order);
  }
  void give(const want_piece& asked, const std::string& text) {
    const auto bytes = std::make_shared<const std::string>(text);
    tell(actor_, adapter_piece{asked.sha256, asked.file, asked.offset, {}, {bytes, std::as_bytes(std::span(*bytes))}});
  }
  void answer_piece(const std::string& text) { give(head_.take<want_piece>(), text); }

  static std::string golden_file(std::string_view name) { return read_file(golden / "llama" / "adapter" / name); }

  const std::array<std::string, 2> golden_{golden_file(adapter_file_names[0]), golden_file(adapter_file_names[1])};
  const bool can_fetch_;
  temp_folder folder_;
  std::shared_ptr<inbox> said_ = std::make_shared<inbox>();  ///< lines for the node's log
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  mock<workers_head_actor> head_{system_};
  mock<worker_actor> worker_{system_};
  adapter_fetcher_actor actor_;
};

TEST_F(fetcher, fetches_what_is_not_here_and_keeps_it) {
  tell(actor_, wanted(1, golden_));
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_EQ(head_.take<adapter_prepared>().error, "");
  const prepare_adapter known = wanted(2, golden_);
  ask_for(known);
  EXPECT_TRUE(worker_.take<adapter_ready>().adapter);
  EXPECT_EQ(head_.count<want_piece>(), 0u);
}

class fetcher_of_the_head : public fetcher {
 protected:
  fetcher_of_the_head() : fetcher(false) {}
};

TEST_F(fetcher_of_the_head, says_at_once_that_files_are_gone_since_nobody_else_has_them) {
  ask_for(wanted(1, golden_));
  EXPECT_NE(worker_.take<adapter_ready>().error.find("adapter pricing@1: its files are gone"), std::string::npos);
  EXPECT_THAT(said_->take<std::string>(),
              testing::StartsWith("adapter pricing@1 cannot be loaded here: its files are gone"));
  EXPECT_EQ(head_.count<want_piece>(), 0u);
}

/// Without the files only a prepared adapter can be handed over to a stage.
TEST_F(fetcher, keeps_prepared_adapters_within_bounds_and_none_beyond_a_stage) {
  const auto ask_without_files = [&] {
    const prepare_adapter known = wanted(0, golden_);
    std::filesystem::remove_all(folder_.path() / "store" / known.sha256);
    ask_for(known);
  };
  const auto prepare = [&] {
    tell(actor_, wanted(1, golden_));
    for (const std::string& text : golden_) answer_piece(text);
    EXPECT_EQ(head_.take<adapter_prepared>().error, "");
  };
  prepare();
  ask_without_files();
  EXPECT_TRUE(worker_.take<adapter_ready>().adapter);
  prepare();
  tell(actor_, stage_ended{});
  ask_without_files();
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_TRUE(worker_.take<adapter_ready>().adapter);
  restart_fetcher(0);
  std::filesystem::remove_all(folder_.path() / "store");
  prepare();
  ask_without_files();
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_TRUE(worker_.take<adapter_ready>().adapter);
}

TEST_F(fetcher, packs_the_layers_of_the_stage_alone_until_it_ends) {
  tell(actor_, wanted(1, golden_));
  for (const std::string& text : golden_) answer_piece(text);
  const auto loaded = [&] {
    const prepare_adapter known = wanted(0, golden_);
    ask_for(known);
    return worker_.take<adapter_ready>().adapter;
  };
  (void)loaded();  // what was prepared before
  const auto whole = loaded();
  tell(actor_, stage_layers{1, 1});
  const auto part = loaded();
  EXPECT_FALSE(part->find(0, linear_kind::q));
  ASSERT_TRUE(part->find(1, linear_kind::q));
  EXPECT_EQ(part->bytes(), whole->bytes() / 2);
  tell(actor_, stage_ended{});
  EXPECT_EQ(loaded()->bytes(), whole->bytes());
  tell(actor_, stage_layers{0, 1});
  EXPECT_FALSE(loaded()->find(1, linear_kind::q));
}

TEST_F(fetcher, fetches_again_what_lies_there_damaged) {
  const prepare_adapter known = wanted(1, golden_);
  const std::string there = "store/" + known.sha256 + "/";
  std::filesystem::create_directories(folder_.path() / there);
  for (const std::string_view name : adapter_file_names) folder_.write(there + std::string(name), "cut short");
  tell(actor_, known);
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_EQ(head_.take<adapter_prepared>().error, "");
  for (std::size_t i = 0; i < golden_.size(); ++i)
    EXPECT_EQ(folder_.read(there + std::string(adapter_file_names[i])), golden_[i]);
}

/// The disk gives back other bytes than it was given: nothing is wrong with their number, or with what they say.
TEST_F(fetcher, fetches_again_what_was_changed_on_the_disk) {
  const prepare_adapter known = wanted(1, golden_);
  tell(actor_, known);
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_EQ(head_.take<adapter_prepared>().error, "");
  std::string changed = golden_[1];
  changed.back() ^= 1;
  const std::string there = "store/" + known.sha256 + "/" + std::string(adapter_file_names[1]);
  for (const bool is_prepared : {false, true}) {
    folder_.write(there, changed);
    restart_fetcher(64 << 20);
    is_prepared ? tell(actor_, known) : ask_for(known);
    for (const std::string& text : golden_) answer_piece(text);
    const std::string error = is_prepared ? head_.take<adapter_prepared>().error : worker_.take<adapter_ready>().error;
    EXPECT_EQ(error, "");
    EXPECT_EQ(folder_.read(there), golden_[1]);
  }
}

TEST_F(fetcher, answers_with_no_adapter_of_the_heads_that_was_changed_on_the_disk) {
  const prepare_adapter known = wanted(1, golden_);
  const std::filesystem::path there = folder_.path() / "store" / known.sha256;
  std::filesystem::create_directories(there);
  std::string changed = golden_[1];
  changed.back() ^= 1;
  folder_.write("store/" + known.sha256 + "/" + std::string(adapter_file_names[0]), golden_[0]);
  folder_.write("store/" + known.sha256 + "/" + std::string(adapter_file_names[1]), changed);
  ask_for(known);
  const std::string error = worker_.take<adapter_ready>().error;
  EXPECT_NE(error.find("store/" + known.sha256 + " was changed after it was published"), std::string::npos) << error;
  EXPECT_EQ(error.find(there.string()), std::string::npos) << "where the state folder is concerns no client";
}

TEST_F(fetcher, removes_what_it_fetched_and_used_least_recently_but_not_what_is_the_heads) {
  const auto fetch = [&](std::uint64_t ticket, const std::array<std::string, 2>& contents) {
    const prepare_adapter what = wanted(ticket, contents);
    tell(actor_, what);
    for (const std::string& text : contents) answer_piece(text);
    EXPECT_EQ(head_.take<adapter_prepared>().error, "");
    return folder_.path() / "store" / what.sha256;
  };
  const auto of_the_head = folder_.path() / "store" / std::string(64, 'a');
  std::filesystem::create_directories(of_the_head);
  restart_fetcher(64 << 20, golden_[0].size() + golden_[1].size());
  const auto first = fetch(1, golden_);
  EXPECT_TRUE(std::filesystem::exists(first));
  const auto second = fetch(2, {golden_[0] + " ", golden_[1]});
  EXPECT_FALSE(std::filesystem::exists(first));
  EXPECT_TRUE(std::filesystem::exists(second)) << "alone too large, but it is needed";
  EXPECT_TRUE(std::filesystem::exists(of_the_head));
}

TEST_F(fetcher, removes_what_workers_that_were_killed_have_left) {
  const auto left_by = [&](pid_t pid) {
    return folder_.path() / "store" / (".fetching-0123456789abcdef-" + std::to_string(pid));
  };
  const pid_t nobody = 999'999'999, somebody = ::getppid();
  for (const pid_t pid : {nobody, somebody, ::getpid()}) std::filesystem::create_directories(left_by(pid));
  restart_fetcher(64 << 20);
  tell(actor_, wanted(1, golden_));
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_EQ(head_.take<adapter_prepared>().error, "");
  EXPECT_FALSE(std::filesystem::exists(left_by(nobody)));
  EXPECT_FALSE(std::filesystem::exists(left_by(::getpid()))) << "in a container, of the process before";
  EXPECT_TRUE(std::filesystem::exists(left_by(somebody))) << "it may still fetch";
}

TEST_F(fetcher, goes_on_with_others_when_a_folder_cannot_be_made) {
  folder_.write("store", "a file");
  tell(actor_, wanted(1, golden_));
  EXPECT_EQ(head_.take<adapter_prepared>().error, "node w0: the server cannot write to its disk");
  std::filesystem::remove(folder_.path() / "store");
  tell(actor_, wanted(2, golden_));
  for (const std::string& text : golden_) answer_piece(text);
  const auto prepared = head_.take<adapter_prepared>();
  EXPECT_EQ(prepared.ticket, 2u);
  EXPECT_EQ(prepared.error, "");
}

TEST_F(fetcher, says_once_to_its_nodes_log_why_an_adapter_cannot_be_loaded_until_it_can) {
  const auto expect_said = [this](bool prepares, bool can, std::size_t lines) {
    tell(actor_, stage_ended{});  // what was prepared is forgotten
    folder_.write("store", "a file");
    if (can) std::filesystem::remove(folder_.path() / "store");
    prepares ? tell(actor_, wanted(1, golden_)) : ask_for(wanted(0, golden_));
    for (const std::string& text : golden_)
      if (can) answer_piece(text);
    const std::string error = prepares ? head_.take<adapter_prepared>().error : worker_.take<adapter_ready>().error;
    EXPECT_EQ(error.find("node w0: "), can ? error.npos : 0) << error;
    if (can) std::filesystem::remove_all(folder_.path() / "store");
    ASSERT_EQ(said_->count<std::string>(), lines);
    if (lines == 0) return;
    const auto line = said_->take<std::string>();
    EXPECT_THAT(line, testing::StartsWith("adapter pricing"));
    EXPECT_THAT(line, testing::HasSubstr(" cannot be loaded here: "));
    EXPECT_THAT(line, testing::HasSubstr((folder_.path() / "store").string()));
  };
  expect_said(true, false, 1);
  expect_said(false, false, 0);
  expect_said(false, true, 0);
  expect_said(true, false, 1);
}

/// The head and the worker alike; the node's log has the folder, once.
TEST_F(fetcher, tells_others_of_a_full_disk_on_which_node_it_is_and_not_in_which_folder) {
  constexpr const char* told = "node w0: the server's disk is full";
  tell(actor_, wanted(1, golden_));
  const auto asked = head_.take<want_piece>();
  {
    const full_disk full(0);
    give(asked, golden_[0]);
    EXPECT_EQ(head_.take<adapter_prepared>().error, told);
    EXPECT_THAT(said_->take<std::string>(), testing::HasSubstr((folder_.path() / "store").string()));
  }
  const prepare_adapter known = wanted(0, golden_);
  const full_disk full(0);
  ask_for(known);
  give(head_.take<want_piece>(), golden_[0]);
  EXPECT_EQ(worker_.take<adapter_ready>().error, told);
}

TEST_F(fetcher, says_what_is_wrong_with_files_that_came_whole_and_goes_on_with_others) {
  tell(actor_, wanted(1, {"{}", "no tensors"}));
  tell(actor_, wanted(2, golden_));
  for (const char* text : {"{}", "no tensors"}) answer_piece(text);
  const auto failed = head_.take<adapter_prepared>();
  EXPECT_EQ(failed.ticket, 1u);
  EXPECT_THAT(failed.error, testing::StartsWith("node w0: the state folder's store/"));
  for (const std::string& text : golden_) answer_piece(text);
  const auto prepared = head_.take<adapter_prepared>();
  EXPECT_EQ(prepared.ticket, 2u);
  EXPECT_EQ(prepared.error, "");
}

TEST_F(fetcher, refuses_a_list_of_files_that_is_none_of_an_adapter) {
  const auto fault_of = [this](const auto& spoil) {
    prepare_adapter what = wanted(1, golden_);
    spoil(what);
    tell(actor_, what);
    return head_.take<adapter_prepared>().error;
  };
  const auto is_no_digest = testing::HasSubstr("is no digest");
  const auto are_no_files = testing::HasSubstr("its list of files is none of an adapter");
  EXPECT_THAT(fault_of([](prepare_adapter& what) { what.sha256 = "../../etc"; }), is_no_digest);
  EXPECT_THAT(fault_of([](prepare_adapter& what) { what.files.clear(); }), are_no_files);
  EXPECT_THAT(fault_of([](prepare_adapter& what) { what.files[0].name = "../evil"; }), are_no_files);
  EXPECT_THAT(fault_of([](prepare_adapter& what) { what.files[1].bytes = largest_adapter_file + 1; }), are_no_files);
  EXPECT_EQ(head_.count<want_piece>(), 0u);
}

TEST_F(fetcher, takes_the_piece_that_it_asked_for_and_no_other) {
  tell(actor_, wanted(1, golden_));
  const auto asked = head_.take<want_piece>();
  want_piece other = asked;
  other.sha256 = std::string(64, 'a');
  give(other, golden_[0]);
  other = asked;
  other.file = adapter_file_names[1];
  give(other, golden_[0]);
  other = asked;
  other.offset = 1;
  give(other, golden_[0].substr(1));
  give(asked, golden_[0].substr(0, 3));
  give(asked, golden_[0].substr(0, 3));  // again
  const auto rest = head_.take<want_piece>();
  EXPECT_EQ(rest.file, asked.file);
  EXPECT_EQ(rest.offset, 3u);
  give(rest, golden_[0].substr(3));
  answer_piece(golden_[1]);
  EXPECT_EQ(head_.take<adapter_prepared>().error, "");
  EXPECT_EQ(head_.count<want_piece>(), 0u);
}

TEST_F(fetcher, gives_up_what_the_head_has_not_or_has_otherwise_and_goes_on_with_others) {
  const auto fault_with = [this](const auto& answer) {
    tell(actor_, wanted(1, golden_));
    answer(head_.take<want_piece>());
    return head_.take<adapter_prepared>().error;
  };
  const auto is_of_another_length = testing::HasSubstr("came with another length than was said");
  EXPECT_THAT(fault_with([this](const want_piece& asked) {
                tell(actor_, adapter_piece{asked.sha256, asked.file, asked.offset, "it was unloaded"});
              }),
              testing::HasSubstr("it was unloaded"));
  EXPECT_THAT(fault_with([this](const want_piece& asked) { give(asked, ""); }), is_of_another_length);
  EXPECT_THAT(fault_with([this](const want_piece& asked) { give(asked, golden_[0] + " "); }), is_of_another_length);
  tell(actor_, wanted(2, golden_));
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_EQ(head_.take<adapter_prepared>().error, "");
}

/// Somebody waits for these, whatever becomes of stages: an adapter is being published.
TEST_F(fetcher, prepares_what_it_was_told_to_though_a_stage_ends) {
  tell(actor_, wanted(1, golden_));
  const auto asked = head_.take<want_piece>();
  const prepare_adapter of_the_stage = wanted(0, {golden_[0] + "  ", golden_[1]});
  ask_for(of_the_stage);
  const std::array<std::string, 2> others{golden_[0] + " ", golden_[1]};
  tell(actor_, wanted(2, others));
  tell(actor_, stage_ended{});
  give(asked, golden_[0]);
  answer_piece(golden_[1]);
  EXPECT_EQ(head_.take<adapter_prepared>().ticket, 1u);
  for (const std::string& text : others) answer_piece(text);
  EXPECT_EQ(head_.take<adapter_prepared>().ticket, 2u);
  EXPECT_EQ(worker_.count<adapter_ready>(), 0u) << "the stage needs its adapter no more";
}

TEST_F(fetcher, forgets_what_it_fetches_and_what_waits_when_the_process_is_no_member_any_more) {
  tell(actor_, wanted(1, {golden_[0] + " ", golden_[1]}));
  (void)head_.take<want_piece>();  // never answered
  ask_for(wanted(0, {golden_[0] + "  ", golden_[1]}));
  tell(actor_, forget_life{});
  ask_for(wanted(0, golden_));
  for (const std::string& text : golden_) answer_piece(text);
  EXPECT_TRUE(worker_.take<adapter_ready>().adapter);
  EXPECT_EQ(head_.count<want_piece>(), 0u);
}

TEST_F(fetcher, believes_no_bytes_of_another_digest) {
  tell(actor_, wanted(1, golden_));
  answer_piece(golden_[0]);
  answer_piece(std::string(golden_[1].size(), 'x'));
  EXPECT_NE(head_.take<adapter_prepared>().error.find("digest"), std::string::npos);
}

}  // namespace
}  // namespace troupe::test
