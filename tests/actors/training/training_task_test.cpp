#include "actors/training/training_task.hpp"

#include <algorithm>
#include <future>
#include <set>

#include <sched.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "actors/training/training_spec.hpp"
#include "model/arch/fingerprint.hpp"
#include "model/formats/hf/hf_config.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/train/data/training_data.hpp"
#include "tests/actors/support.hpp"
#include "tests/base/full_disk.hpp"

namespace troupe::test {
namespace {

/// Tasks on a tiny model, one after the other in the folder of one job.
class training_tasks : public testing::Test {
 protected:
  training_tasks() {
    (void)letters_prompting(folder_);  // the tokenizer
    std::filesystem::copy(golden / "llama", model_);
    std::filesystem::create_directories(folder_.path() / "training/job-1");
    folder_.write("training/job-1/data.jsonl", "{\"prompt\":\"ab\",\"completion\":\"cd\"}\n{\"text\":\"efgh\"}\n");
  }
  training_site site_with(std::optional<scheme> quant) const {
    training_site site{model_, {quant, {}, folder_.path() / "cache", {}}, folder_.path() / "training"};
    site.idle_priority = false;
    return site;
  }
  train_job order_for(const training_site& site, const json& more = json::object()) const {
    json spec{{"adapter", "pricing"}, {"data", "d.jsonl"}, {"steps", 2}, {"length", 16}, {"held_out", 0.0}};
    spec.update(more);
    train_job order;
    order.job = "job-1";
    order.spec = spec.dump();
    thread_pool pool(1);
    order.model = model_id(fingerprint_of(*load_model(model_, site.load, pool)));
    return order;
  }
  training_ended run(std::optional<scheme> quant, const json& more = json::object()) {
    const training_site site = site_with(quant);
    training_task task(site, order_for(site, more), [this](const training_task::news& what) {
      std::visit([&](const auto& each) { said_.put(each); }, what);
    });
    return said_.take<training_ended>();
  }
  std::string first_message() {
    const auto progress = said_.take<training_progress>();
    while (said_.count<training_progress>() > 0) (void)said_.take<training_progress>();
    return progress.message;
  }

  training_progress last_progress() {
    training_progress last;
    while (said_.count<training_progress>() > 0) last = said_.take<training_progress>();
    return last;
  }

  temp_folder folder_;
  std::filesystem::path model_ = folder_.path() / "letters";
  inbox said_;
};

TEST_F(training_tasks, go_on_from_a_checkpoint_of_the_same_base_alone) {
  EXPECT_EQ(run(scheme::u8).error, "");
  EXPECT_EQ(first_message().rfind("begins with", 0), 0u);
  EXPECT_EQ(run(scheme::u8).error, "");
  EXPECT_EQ(first_message().rfind("goes on from step 2", 0), 0u);
  EXPECT_EQ(run(scheme::q4).error, "");
  EXPECT_EQ(first_message().rfind("begins anew: ", 0), 0u);
}

TEST_F(training_tasks, say_that_they_have_few_steps_to_learn_in) {
  EXPECT_EQ(run(scheme::u8, {{"steps", 9}}).error, "");
  EXPECT_TRUE(first_message().starts_with("begins with 2 examples, 9 steps: few steps to learn in"));
  std::filesystem::remove(folder_.path() / "training/job-1/checkpoint.safetensors");
  EXPECT_EQ(run(scheme::u8, {{"steps", 10}}).error, "");
  EXPECT_EQ(first_message(), "begins with 2 examples, 10 steps");
}

/// The head may have been away.
TEST_F(training_tasks, tell_the_newest_steps_again_when_they_go_on) {
  folder_.write("training/job-1/validation.jsonl", "{\"text\":\"aaaa\"}\n");
  const json spec{{"steps", 3}, {"validation", "v.jsonl"}, {"validate_every", 3}};
  EXPECT_EQ(run(scheme::u8, spec).error, "");
  while (said_.count<training_progress>() > 0) (void)said_.take<training_progress>();
  EXPECT_EQ(run(scheme::u8, spec).error, "");
  std::vector<std::int64_t> steps, validations;
  for (const training_point& point : said_.take<training_progress>().points)
    (point.is_validation ? validations : steps).push_back(point.step);
  EXPECT_EQ(steps, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(validations, (std::vector<std::int64_t>{0, 3}));
}

/// Steps between them are what a trainer that dies then loses.
TEST_F(training_tasks, write_checkpoints_after_so_much_time) {
  const auto checkpoints_with = [&](duration after) {
    training_site site = site_with(scheme::u8);
    site.checkpoint_after = after;
    std::filesystem::remove(site.folder / "job-1/checkpoint.safetensors");
    std::set<std::int64_t> told;
    training_task task(site, order_for(site, {{"steps", 4}}), [&](const training_task::news& what) {
      if (const auto* progress = std::get_if<training_progress>(&what)) told.insert(progress->checkpoint);
      if (const auto* end = std::get_if<training_ended>(&what)) said_.put(*end);
    });
    EXPECT_EQ(said_.take<training_ended>().error, "");
    return told;
  };
  EXPECT_EQ(checkpoints_with({}), (std::set<std::int64_t>{-1, 1, 2, 3, 4}));
  EXPECT_EQ(checkpoints_with(std::chrono::hours(24)), (std::set<std::int64_t>{-1, 4})) << "the last, of its result";
}

TEST_F(training_tasks, run_while_nobody_else_does_unless_they_are_told_otherwise) {
  for (const bool idle : {true, false}) {
    training_site site = site_with({});
    site.idle_priority = idle;
    // Refused, so that it has little to do in the time that is left to it.
    training_task task(site, train_job{}, [this](const training_task::news&) { said_.put(::sched_getscheduler(0)); });
    EXPECT_EQ(said_.take<int>() == SCHED_IDLE, idle);
  }
}

TEST_F(training_tasks, that_find_no_room_for_their_result_go_on_when_there_is_room) {
  EXPECT_EQ(run(scheme::u8).error, "");
  {
    const full_disk all_of_it(1);
    const training_ended full = run(scheme::u8);
    EXPECT_NE(full.error.find("cannot be written"), std::string::npos) << full.error;
    EXPECT_TRUE(full.may_pass);
    EXPECT_TRUE(full.files.empty());
  }
  while (said_.count<training_progress>() > 0) (void)said_.take<training_progress>();
  const training_ended done = run(scheme::u8);
  EXPECT_EQ(done.error, "");
  EXPECT_EQ(done.files.size(), 2u);
  EXPECT_EQ(first_message().rfind("goes on from step 2", 0), 0u);
}

TEST_F(training_tasks, that_cannot_read_a_file_go_on_when_they_can) {
  EXPECT_EQ(run(scheme::u8).error, "");
  for (const char* name : {"data.jsonl", "checkpoint.safetensors"}) {
    const auto file = folder_.path() / "training/job-1" / name, away = folder_.path() / "away";
    std::filesystem::rename(file, away);
    ASSERT_EQ(::mknod(file.c_str(), S_IFSOCK | 0600, 0), 0);  // which nobody can open
    const training_ended ended = run(scheme::u8);
    EXPECT_NE(ended.error.find("cannot be opened"), std::string::npos) << name << ended.error;
    EXPECT_TRUE(ended.may_pass) << name;
    EXPECT_TRUE(std::filesystem::exists(file)) << name;
    std::filesystem::rename(away, file);
  }
  while (said_.count<training_progress>() > 0) (void)said_.take<training_progress>();
  EXPECT_EQ(run(scheme::u8).error, "");
  EXPECT_EQ(first_message().rfind("goes on from step 2", 0), 0u);
}

/// Others may have the right files: nothing is wrong with the job.
TEST_F(training_tasks, whose_own_base_is_missing_or_another_go_on_when_that_is_mended) {
  const training_site right = site_with(scheme::u8);
  training_site missing = right, other = site_with(scheme::q4);
  missing.model = folder_.path() / "nowhere";
  for (const training_site& site : {missing, other}) {
    training_task task(site, order_for(right), [this](const training_task::news& what) {
      std::visit([&](const auto& each) { said_.put(each); }, what);
    });
    const training_ended ended = said_.take<training_ended>();
    EXPECT_NE(ended.error, "");
    EXPECT_TRUE(ended.may_pass) << ended.error;
  }
  EXPECT_EQ(run(scheme::u8).error, "");
}

TEST_F(training_tasks, that_find_the_data_to_be_wrong_do_not_go_on) {
  folder_.write("training/job-1/data.jsonl", "{\n");
  const training_ended ended = run(scheme::u8);
  EXPECT_NE(ended.error, "");
  EXPECT_FALSE(ended.may_pass);
}

/// Otherwise the head would give the job out again, before it hears that somebody's disk is full, say.
TEST_F(training_tasks, that_share_a_job_tell_why_they_end_before_the_others_miss_them) {
  training_site first = site_with(scheme::u8), second = first;
  first.folder = folder_.path() / "elsewhere";  // there is no data
  first.meeting = std::make_shared<meeting_place>("127.0.0.1");
  second.meeting = std::make_shared<meeting_place>("127.0.0.1");
  train_job order = order_for(first);
  order.ranks = 2;
  order.meeting = first.meeting->endpoint();
  const auto end_of = [](const training_task::news& what) { return std::get_if<training_ended>(&what); };
  std::promise<training_ended> missed;
  std::future<training_ended> other = missed.get_future();
  auto gone = std::make_unique<training_task>(first, order, [&](const training_task::news& what) {
    if (end_of(what)) said_.put(*end_of(what));
  });
  order.rank = 1;
  training_task left(second, order, [&](const training_task::news& what) {
    if (end_of(what)) missed.set_value(*end_of(what));
  });
  EXPECT_NE(said_.take<training_ended>().error.find("data.jsonl"), std::string::npos);
  EXPECT_EQ(other.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  gone.reset();
  EXPECT_TRUE(other.get().is_alone);
}

TEST_F(training_tasks, on_a_gpu_are_refused_where_the_model_is_a_mixture_of_experts) {
  for (const char* file : {"config.json", "model.safetensors"})
    std::filesystem::copy_file(golden / "mixtral" / file, model_ / file,
                               std::filesystem::copy_options::overwrite_existing);
  training_site site = site_with({});
  site.device = device_id{0};
  training_task task(site, order_for(site), [this](const training_task::news& what) {
    std::visit([&](const auto& each) { said_.put(each); }, what);
  });
  const training_ended ended = said_.take<training_ended>();
  EXPECT_TRUE(ended.may_pass) << "others can train it";
  EXPECT_EQ(ended.error,
            "cuda:0: the model is a mixture of experts, which only processors train so far: use the device cpu");
}

/// Whose only step is too long.
TEST_F(training_tasks, publish_what_did_best_on_other_data_where_that_is_asked_for) {
  folder_.write("training/job-1/validation.jsonl", "{\"text\":\"aaaa\"}\n");
  json spec{{"steps", 1}, {"lr", 0.1}, {"validation", "v.jsonl"}};
  const auto result_with = [&](bool best) {
    spec["best"] = best;
    EXPECT_EQ(run(scheme::u8, spec).error, "");
    return open_safetensors(folder_.path() / "training/job-1/result/adapter_model.safetensors");
  };
  const auto changes_nothing = [](const tensor_set& adapter) {
    return std::ranges::all_of(adapter.tensors, [](const auto& each) {
      const auto& [name, tensor] = each;
      return name.find("lora_B") == name.npos ||
             std::ranges::all_of(tensor.data, [](std::byte b) { return b == std::byte{0}; });
    });
  };
  EXPECT_TRUE(changes_nothing(result_with(true)));
  const training_progress last = last_progress();
  EXPECT_TRUE(last.message.starts_with("publishes step 0 of 1, which did best: validation loss ")) << last.message;
  EXPECT_NE(last.message.find("did better than the base"), std::string::npos) << last.message;
  EXPECT_TRUE(last.is_warning);
  EXPECT_EQ(last.best_step, 0);
  EXPECT_FALSE(changes_nothing(result_with(false)));
  EXPECT_EQ(last_progress().message, "");
}

TEST_F(training_tasks, say_which_step_they_publish_where_one_did_best) {
  folder_.write("training/job-1/validation.jsonl", "{\"prompt\":\"ab\",\"completion\":\"cd\"}\n");
  EXPECT_EQ(run(scheme::u8, {{"steps", 3}, {"lr", 1e-3}, {"validation", "v.jsonl"}, {"best", true}}).error, "");
  const training_progress last = last_progress();
  EXPECT_TRUE(last.message.starts_with(fmt::format("publishes step {} of 3, which did best", last.best_step)));
  EXPECT_GT(last.best_step, 0);
  EXPECT_FALSE(last.is_warning);
}

TEST_F(training_tasks, are_refused_where_the_data_reads_otherwise_than_on_the_head) {
  const model_config config = read_hf_config(model_);
  const auto data =
      read_training_data(folder_.path() / "training/job-1/data.jsonl", data_format_of(model_, config, 16));
  const json as_on_the_head{{"reading", fmt::format("{:016x}", reading_of(data.fingerprint, 0))}};
  EXPECT_EQ(run(scheme::u8, as_on_the_head).error, "");
  folder_.write("letters/tokenizer_config.json", R"({"bos_token": "a", "eos_token": "</s>", "add_bos_token": true})");
  const training_ended ended = run(scheme::u8, as_on_the_head);
  EXPECT_NE(ended.error.find("reads the data otherwise"), std::string::npos);
  EXPECT_TRUE(ended.may_pass) << "nothing is wrong with the job";
}

}  // namespace
}  // namespace troupe::test
