#include "model/train/run/training_run.hpp"
#include "base/to_size.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/arch/single_sequence.hpp"
#include "model/lora/adapter.hpp"
#include "model/train/passes/cpu_train_pass.hpp"
#include "tests/base/full_disk.hpp"
#include "tests/model/train/run/adapter_run.hpp"
#include "tests/transport/collective/thread_ranks.hpp"

namespace troupe {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(training_run, nothing_comes_of_weights_that_overflowed) {
  const training_data data = counting_data(90, 60);
  training_options options = quick_options();
  options.precision = train_precision::exact;
  for (const char* model : {"llama", "mixtral"}) {
    adapter_run f(model, 2, options, data);
    f.run.step();
    std::ranges::fill(f.lora.parameters().values(), std::numeric_limits<float>::infinity());
    const auto fails = ThrowsMessage<std::runtime_error>(HasSubstr("no number any more at step "));
    EXPECT_THAT([&] { f.run.validate(); }, fails) << model;
    EXPECT_THAT([&] { f.run.step(); }, fails) << model;
  }
}

TEST(training_run, nothing_comes_of_weights_that_are_too_large_to_be_squared) {
  const training_data data = counting_data(90, 60);
  training_options options = quick_options();
  options.precision = train_precision::exact;
  adapter_run f("llama", 2, options, data, scheme::u8, {.factors = {.rank = 3, .alpha = 6}, .targets = {"o_proj"}});
  f.run.step();
  std::ranges::fill(f.lora.parameters().values(), 1e12f);
  EXPECT_TRUE(std::isfinite(f.run.validate().loss)) << "the norms make zeros of them";
  EXPECT_THAT([&] { f.run.step(); }, ThrowsMessage<std::runtime_error>(HasSubstr("all gradients are 0 at step 2: ")));
}

TEST(training_run, a_base_that_predicts_no_numbers_is_not_taken_for_a_high_rate) {
  const training_data data = counting_data(90, 60);
  training_options options = quick_options();
  options.precision = train_precision::exact;
  for (const bool measured : {true, false}) {
    adapter_run f("llama", 2, options, data);
    std::ranges::fill(f.lora.parameters().values(), std::numeric_limits<float>::infinity());
    EXPECT_THAT([&] { measured ? (void)f.run.validate() : (void)f.run.step(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("take another base")));
  }
}

TEST(training_run, counts_its_copies_of_all_that_is_trained) {
  const training_data data = counting_data(90, 60);
  const auto copies = [&](std::int64_t accumulation, double share) {
    training_options options = quick_options();
    options.accumulation = accumulation, options.validation_share = share;
    const adapter_run f("llama", 1, options, data);
    const auto each = static_cast<std::int64_t>(f.lora.parameters().values().size_bytes());
    EXPECT_EQ(f.run.bytes_beside_passes() % each, 0);
    return f.run.bytes_beside_passes() / each;
  };
  EXPECT_EQ(copies(1, 0), 3) << "two moments, and what is written";
  EXPECT_EQ(copies(2, 0), 4) << "the gradients of the pass before";
  EXPECT_EQ(copies(1, 0.1), 5) << "the best values, and the last while those are written";
  EXPECT_EQ(copies(2, 0.1), 6);
}

TEST(training_run, loss_falls) {
  const training_data data = counting_data(90, 60);
  training_options options = quick_options();
  options.epochs = 20;
  adapter_run f("llama", 2, options, data);
  const double before = f.run.validate().loss;
  while (!f.run.finished()) f.run.step();
  const validation_report after = f.run.validate();
  EXPECT_LT(after.loss, 0.75 * before);
  EXPECT_GT(after.accuracy, 0.2);
}

TEST(training_run, no_step_has_more_than_all_right) {
  training_data data;
  data.examples.push_back({.tokens = {5, 8, 11, 14}, .learned = {false, true, true, true}});
  training_options options = quick_options();
  options.batch_rows = options.accumulation = 1, options.epochs = 100;
  options.dropout = options.validation_share = 0;
  adapter_run f("llama", 2, options, data);
  double most = 0;
  while (!f.run.finished()) most = std::max(most, f.run.step().accuracy);
  EXPECT_EQ(most, 1) << "three thirds, though a third is more than that in 32 bits";
}

TEST(training_run, goes_on_from_no_checkpoint_of_another_choice_of_what_is_held_out) {
  training_data data = counting_data(90, 60);
  const test::temp_folder folder;
  const auto file = folder.path() / "checkpoint.safetensors";
  adapter_run one_by_one("llama", 1, quick_options(), data);
  one_by_one.run.save(file);
  for (std::size_t i = 0; i < data.examples.size(); ++i) data.sources.push_back(i / 3);
  adapter_run by_lines("llama", 1, quick_options(), data);
  EXPECT_THAT([&] { by_lines.run.load(file); }, ThrowsMessage<input_error>(HasSubstr("what is held out")));
}

TEST(training_run, doubts_few_steps_and_a_warm_up_that_is_as_long) {
  const training_data data = counting_data(90, 60);
  const auto doubts_with = [&](std::int64_t steps, std::int64_t warmup) {
    training_options options = quick_options();
    options.most_steps = steps, options.warmup = warmup;
    return adapter_run("llama", 1, options, data).run.doubts();
  };
  EXPECT_EQ(doubts_with(10, 9), "");
  EXPECT_THAT(doubts_with(10, 10), testing::StartsWith("a warm-up of 10 steps is no shorter than the run"));
  EXPECT_THAT(doubts_with(9, 0), testing::StartsWith("few steps to learn in"));
  EXPECT_THAT(doubts_with(1, 1), HasSubstr("; a warm-up of 1 steps"));
}

TEST(training_run, counts_the_tokens_of_its_steps_wherever_it_goes_on) {
  const training_data data = counting_data(90, 60);
  training_options options = quick_options();
  options.epochs = 3;
  adapter_run f("llama", 2, options, data);
  std::int64_t tokens = 0;
  while (!f.run.finished()) {
    EXPECT_EQ(f.run.tokens(), tokens) << f.run.done();
    tokens += f.run.step().tokens;
  }
  EXPECT_EQ(f.run.tokens(), tokens);
}

TEST(training_run, any_number_of_threads_gives_the_same_bits) {
  const training_data data = counting_data(90, 40);
  for (const char* model :
       {"qwen3", "gpt2", "gemma3", "olmo2", "gemma2", "qwen3-moe", "mixtral", "gpt-oss", "qwen2-moe", "glm4-moe",
        "qwen3.5", "qwen3.5-moe", "lfm2", "gemma4-small", "gemma4-moe", "deepseek3"}) {
    std::vector<std::vector<float>> results;
    for (const int threads : {1, 2, 3}) {
      adapter_run f(model, threads, quick_options(), data);
      for (int i = 0; i < 5; ++i) f.run.step();
      results.push_back(f.values());
    }
    EXPECT_EQ(results[0], results[1]) << model;
    EXPECT_EQ(results[0], results[2]) << model;
  }
}

TEST(training_run, resumed_anywhere_ends_with_the_same_bits) {
  const training_data data = counting_data(90, 40);
  adapter_run whole("mistral", 2, quick_options(), data);
  std::vector<double> losses;
  while (!whole.run.finished()) {
    losses.push_back(whole.run.step().loss);
    whole.run.validate();
  }
  const test::temp_folder folder;
  for (const std::int64_t stop : {std::int64_t{0}, std::int64_t{1}, whole.run.steps() / 2}) {
    adapter_run first("mistral", 1, quick_options(), data);
    for (std::int64_t i = 0; i < stop; ++i) first.run.step(), first.run.validate();
    first.run.save(folder.path() / "checkpoint.safetensors");
    adapter_run second("mistral", 2, quick_options(), data);
    second.run.load(folder.path() / "checkpoint.safetensors");
    for (std::int64_t i = stop; i < whole.run.steps(); ++i) {
      EXPECT_EQ(second.run.step().loss, losses[to_size(i)]) << i;
      second.run.validate();
    }
    EXPECT_EQ(second.values(), whole.values()) << stop;
    EXPECT_EQ(second.run.best().step, whole.run.best().step);
    EXPECT_EQ(second.run.best().loss, whole.run.best().loss);
  }
}

TEST(training_run, keeping_activations_or_not_gives_the_same_bits) {
  const training_data data = counting_data(90, 30);
  for (const char* model :
       {"qwen3", "gemma3", "olmo2", "gemma2", "qwen3-moe", "mixtral", "gpt-oss", "qwen2-moe", "glm4-moe", "cohere2",
        "qwen3.5", "qwen3-next", "lfm2", "gemma4", "gemma4-small", "gemma4-moe", "deepseek2", "deepseek3"}) {
    std::vector<std::vector<float>> results;
    for (const bool keep : {true, false}) {
      training_options options = quick_options();
      options.keep_activations = keep;
      adapter_run f(model, 2, options, data);
      for (int i = 0; i < 3; ++i) f.run.step();
      results.push_back(f.values());
    }
    EXPECT_EQ(results[0], results[1]) << model;
  }
}

/// A member's hooks, over ranks that are threads.
training_group group_of(collective& ranks) {
  const auto ends_of = [&ranks](std::size_t bytes) {
    std::vector<std::size_t> ends;
    for (int rank = 1; rank <= ranks.size(); ++rank) ends.push_back(bytes * to_size(rank) / to_size(ranks.size()));
    return ends;
  };
  return {ranks.rank(), ranks.size(), [&ranks](std::span<float> values) { ranks.all_reduce_sum(values); },
          [&ranks, ends_of](std::span<std::byte> parts) { ranks.all_gather(parts, ends_of(parts.size())); },
          [&ranks](std::span<std::byte> bytes) { ranks.broadcast(bytes, 0); }};
}

struct outcome {
  std::vector<float> values;
  std::vector<double> losses;
  bool operator==(const outcome&) const = default;
};

/// All steps of a run that members share from where `begin` puts its first one; what each of them has in the end. The
/// last round of a step is not full, nor is the last step of an epoch.
std::vector<outcome> train_together(int members, const std::function<void(training_run&)>& begin = {}) {
  const training_data data = counting_data(90, 40);
  const auto ranks = test::make_thread_ranks(members, std::chrono::seconds(30));
  std::vector<std::unique_ptr<adapter_run>> runs;
  for (const auto& rank : ranks) {
    training_options options = quick_options();
    options.accumulation = 5, options.batch_rows = 1;
    options.group = group_of(*rank);
    runs.push_back(std::make_unique<adapter_run>("qwen3", 1, options, data));
  }
  if (begin) begin(runs.front()->run);
  std::vector<outcome> outcomes(ranks.size());
  const auto finish = [](adapter_run& f, outcome& own) {
    f.run.follow_first();
    for (own.losses = {f.run.best().loss}; !f.run.finished(); own.losses.push_back(f.run.validate().loss))
      own.losses.push_back(f.run.step().loss);
    own.values = f.values();
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < ranks.size(); ++i) threads.emplace_back([&, i] { finish(*runs[i], outcomes[i]); });
  threads.clear();
  return outcomes;
}

TEST(training_run, any_number_of_members_gives_the_same_bits) {
  const outcome alone = train_together(1).front();
  for (const int members : {2, 3, 5})
    for (const outcome& each : train_together(members)) EXPECT_EQ(each, alone) << members;
}

TEST(training_run, a_group_goes_on_where_its_first_member_is) {
  const test::temp_folder folder;
  const auto some_steps = [&](training_run& run) {
    for (int i = 0; i < 3; ++i) run.step(), run.validate();
    run.save(folder.path() / "checkpoint.safetensors");
  };
  const outcome alone = train_together(1, some_steps).front();
  const auto resume = [&](training_run& run) { run.load(folder.path() / "checkpoint.safetensors"); };
  for (const outcome& each : train_together(3, resume)) EXPECT_EQ(each, alone);
}

TEST(training_run, nobody_of_a_group_goes_on_with_a_member_of_another_run) {
  const training_data data = counting_data(90, 40);
  const auto ranks = test::make_thread_ranks(3, std::chrono::seconds(30));
  std::vector<std::unique_ptr<adapter_run>> fixtures;
  for (const auto& rank : ranks) {
    training_options options = quick_options();
    options.group = group_of(*rank);
    options.subject = rank->rank() == 1 ? " base 8" : " base 7";
    fixtures.push_back(std::make_unique<adapter_run>("llama", 1, options, data));
  }
  std::vector<std::jthread> threads;
  for (const auto& each : fixtures)
    threads.emplace_back([&run = each->run] {
      EXPECT_THAT([&] { run.follow_first(); }, ThrowsMessage<input_error>(HasSubstr("give them all the same files")));
    });
}

TEST(training_run, a_checkpoint_of_another_run_is_refused) {
  const training_data data = counting_data(90, 30);
  const test::temp_folder folder;
  training_options usual = quick_options();
  usual.subject = identity_of({}, 7);
  adapter_run first("llama", 1, usual, data);
  first.run.step();
  first.run.save(folder.path() / "c.safetensors");
  training_options other = usual;
  other.rate = 2e-2;
  adapter_run second("llama", 1, other, data);
  EXPECT_THAT([&] { second.run.load(folder.path() / "c.safetensors"); },
              ThrowsMessage<input_error>(HasSubstr(fmt::format(
                  "options (schedule, rate and warm-up cosine {} 0 2, here cosine 0.02 0 2): use", usual.rate))));
  training_options of_another = usual;
  of_another.subject = identity_of({}, 8);
  adapter_run third("llama", 1, of_another, data);
  EXPECT_THAT([&] { third.run.load(folder.path() / "c.safetensors"); },
              ThrowsMessage<input_error>(HasSubstr("options (the base): use")));
  std::ofstream(folder.path() / "broken.safetensors") << "{}";
  EXPECT_THROW(first.run.load(folder.path() / "broken.safetensors"), input_error);
  EXPECT_EQ(first.run.done(), 1);
}

TEST(training_run, a_checkpoint_of_an_adapter_with_another_rank_or_other_targets_is_refused_as_that) {
  const training_data data = counting_data(90, 30);
  const test::temp_folder folder;
  const std::filesystem::path file = folder.path() / "c.safetensors";
  const auto adapted = [](int rank, std::vector<std::string> targets) {
    lora_options adapter{.factors = {.rank = rank, .alpha = 6}};
    adapter.targets = std::move(targets);
    return adapter;
  };
  adapter_run f("llama", 1, quick_options(), data, scheme::u8, adapted(3, {"q_proj", "v_proj"}));
  f.run.step();
  f.run.save(file);
  for (const auto& adapter : {adapted(8, {"q_proj", "v_proj"}), adapted(3, {"q_proj"}),
                              adapted(3, {"q_proj", "k_proj", "v_proj"}), adapted(3, {"q_proj", "o_proj"})}) {
    adapter_run other("llama", 1, quick_options(), data, scheme::u8, adapter);
    EXPECT_THAT([&] { other.run.load(file); }, ThrowsMessage<input_error>(HasSubstr("other --rank or --targets: use")));
    EXPECT_EQ(other.run.done(), 0);
  }
}

TEST(training_run, a_checkpoint_beyond_the_end_of_the_run_is_refused_and_changes_nothing) {
  const training_data data = counting_data(90, 30);
  const test::temp_folder folder;
  const std::filesystem::path file = folder.path() / "c.safetensors";
  training_options options = quick_options();
  options.epochs = 1;
  adapter_run f("llama", 1, options, data);
  f.run.step();
  f.run.save(file);
  std::string changed = test::read_file(file);
  changed[changed.find("\"step\":\"1\"") + 8] = '9';
  changed[changed.find("\"sha256\"") + 1] = 'S';  // as a checkpoint without a digest
  std::ofstream(file, std::ios::binary) << changed;
  f.run.step();
  const std::vector<float> values = f.values();
  ASSERT_LT(f.run.steps(), 9);
  EXPECT_THAT([&] { f.run.load(file); }, ThrowsMessage<input_error>(HasSubstr("is at step 9 of ")));
  EXPECT_EQ(f.values(), values);
  EXPECT_EQ(f.run.done(), 2);
}

TEST(training_run, a_checkpoint_of_which_a_damaged_disk_changed_a_bit_is_refused) {
  const training_data data = counting_data(90, 30);
  const test::temp_folder folder;
  const std::filesystem::path file = folder.path() / "c.safetensors";
  adapter_run f("llama", 1, quick_options(), data);
  f.run.step();
  f.run.save(file);
  const std::string whole = test::read_file(file);
  for (const std::size_t at : {whole.find("\"step\":\"1\"") + 8, whole.size() / 2, whole.size() - 1}) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    std::ofstream(file, std::ios::binary) << changed;
    EXPECT_THAT([&] { f.run.load(file); }, ThrowsMessage<input_error>(HasSubstr("damaged"))) << at;
  }
  EXPECT_EQ(f.run.done(), 1);
}

TEST(training_run, options_that_make_no_sense_are_refused) {
  const training_data data = counting_data(90, 30);
  training_options decay = quick_options(), clip = quick_options();
  decay.adam.weight_decay = -5;
  clip.adam.clip = -1;
  EXPECT_THROW(adapter_run("llama", 1, decay, data), input_error);
  EXPECT_THROW(adapter_run("llama", 1, clip, data), input_error);
  training_options accumulation = quick_options(), epochs = quick_options();
  accumulation.accumulation = std::int64_t{1} << 62;  // times four rows: 0, which was divided by
  epochs.epochs = std::int64_t{1} << 62;
  EXPECT_THROW(adapter_run("llama", 1, accumulation, data), input_error);
  EXPECT_THROW(adapter_run("llama", 1, epochs, data), input_error);
}

TEST(training_run, a_full_disk_leaves_the_last_checkpoint_whole) {
  const training_data data = counting_data(90, 30);
  const test::temp_folder folder;
  adapter_run f("llama", 1, quick_options(), data);
  f.run.save(folder.path() / "c.safetensors");
  const auto size = std::filesystem::file_size(folder.path() / "c.safetensors");
  f.run.step();
  {
    const test::full_disk in_the_middle_of_the_file(size / 40);
    EXPECT_THROW(f.run.save(folder.path() / "c.safetensors"), std::runtime_error);
    EXPECT_THROW(f.lora.save(folder.path() / "adapter", "base"), std::runtime_error);
  }
  // a folder where the file should be: renaming fails at the very end
  std::filesystem::create_directories(folder.path() / "d.safetensors" / "inside");
  EXPECT_THROW(f.run.save(folder.path() / "d.safetensors"), std::runtime_error);
  EXPECT_EQ(std::filesystem::file_size(folder.path() / "c.safetensors"), size);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos);
}

TEST(training_run, measures_by_examples_of_their_own_where_there_are_some) {
  const training_data data = counting_data(90, 30), others = counting_data(70, 40), validation = counting_data(90, 7);
  training_options options = quick_options();
  options.epochs = 1;
  thread_pool pool(1);
  trained_model model = frozen(load_golden("llama", pool));
  const lora_parameters lora(model, {}, 1);
  training_run run(model, lora.parameters(), {pool, kernels()}, data, &validation, options);
  training_run other(model, lora.parameters(), {pool, kernels()}, others, &validation, options);
  EXPECT_EQ(run.validate().loss, other.validate().loss) << "whatever is learned";
  std::int64_t trained_on = 0, given = 0;
  while (!run.finished()) trained_on += run.step().tokens;
  for (const training_example& example : data.examples) given += example.rows();
  EXPECT_EQ(trained_on, given) << "none of them is held out";
}

TEST(training_run, examples_in_one_row_do_not_see_each_other) {
  thread_pool pool(2);
  for (const char* model : {"qwen3", "mistral", "gpt2", "qwen3.5", "lfm2"}) {
    const auto base = load_golden(model, pool);
    const trained_model trained = frozen(base);
    cpu_train_pass pass(trained, {pool, kernels()}, {.most_rows = 64, .most_positions = 32});
    const training_rows both = some_rows(base->config, {20, 13});
    training_rows first = both, second = both;
    first.tokens.resize(20), first.targets.resize(20), first.segments.resize(1);
    second.tokens.erase(second.tokens.begin(), second.tokens.begin() + 20);
    second.targets.erase(second.targets.begin(), second.targets.begin() + 20);
    second.segments = {{0, 13}};
    EXPECT_NEAR(pass.measure(both).loss, pass.measure(first).loss + pass.measure(second).loss, 1e-9) << model;
  }
}

/// What the trained pass computes is what serving computes with the written adapter.
TEST(training_run, a_written_adapter_serves_what_was_trained) {
  const training_data data = counting_data(90, 40);
  for (const char* model :
       {"gpt2",       "llama",         "mistral",        "qwen2",          "qwen3",       "phi3",       "smollm3",
        "gemma3",     "granite",       "gemma2",         "olmo2",          "qwen3-moe",   "mixtral",    "gpt-oss",
        "olmoe",      "granite-moe",   "granite-hybrid", "qwen2-moe",      "glm4-moe",    "glm",        "glm4",
        "ernie",      "cohere",        "cohere2",        "qwen3.5",        "qwen3.5-moe", "qwen3-next", "lfm2",
        "lfm2-moe",   "gemma4",        "gemma4-small",   "gemma4-moe",     "deepseek2",   "deepseek3",  "glm4-moe-lite",
        "granite-h",  "granite-h-moe", "nemotron-h",     "nemotron-h-moe", "seed-oss",    "arcee",      "exaone4",
        "minimax-m2", "ernie-moe"}) {
    training_options options = quick_options();
    adapter_run f(model, 2, options, data, std::nullopt);
    for (int i = 0; i < 6; ++i) f.run.step();
    const test::temp_folder folder;
    f.lora.save(folder.path(), model);
    const adapter_file file = read_adapter(folder.path(), f.base->config);
    const lora_adapter adapter(file, f.base->config.layers);
    single_sequence sequence(f.base, {&adapter, 64, 64, kv_kind::f32}, {f.pool, kernels()});
    training_rows rows = some_rows(f.base->config, {24});
    double expected = 0;
    sequence.feed(rows.tokens, [&](std::size_t i, std::span<const float> logits) {
      if (rows.targets[i] < 0) return;
      double total = 0;
      for (const float logit : logits) total += std::exp(static_cast<double>(logit));
      expected += std::log(total) - static_cast<double>(logits[to_size(rows.targets[i])]);
    });
    cpu_train_pass pass(f.trained, {f.pool, kernels()}, {.most_rows = 64, .most_positions = 64});
    EXPECT_NEAR(pass.measure(rows).loss, expected, 1e-3 * expected) << model;
    trained_model again = frozen(f.base);
    lora_parameters loaded(again, read_lora_options(folder.path(), f.base->config), 99);
    loaded.load(folder.path(), f.base->config);
    EXPECT_EQ(loaded.parameters().values().size(), f.lora.parameters().values().size());
    cpu_train_pass second(again, {f.pool, kernels()}, {.most_rows = 64, .most_positions = 64});
    EXPECT_EQ(second.measure(rows).loss, pass.measure(rows).loss) << model;
  }
}

}  // namespace
}  // namespace troupe
