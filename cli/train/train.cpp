#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/field_error.hpp"
#include "base/number_in.hpp"
#include "base/paths.hpp"
#include "cli/commands.hpp"
#include "cli/standard_input.hpp"
#include "cli/train/train_cluster.hpp"
#include "cli/train/train_local.hpp"

namespace troupe {
namespace {

void add_data_options(CLI::App& own, training_flags& options) {
  own.add_option("--data", options.data,
                 "lines of JSON (messages; prompt and completion; text), or plain text: what is learned; - is standard "
                 "input")
      ->type_name("FILE")
      ->required();
  own.add_option("--validation", options.validation, "examples to measure with [a share of the data]")
      ->type_name("FILE");
  own.add_option("--held-out", options.run.validation_share, "share of the examples to measure with [0.05]");
  own.add_option("--length", options.run.row_length, "tokens of a row that examples are packed into [512]")
      ->type_name("N");
}

/// "PATTERN=VALUE" of each, as its halves. Refuses what is none, by the flag.
std::vector<std::pair<std::string, double>> read_patterns(const std::vector<std::string>& texts,
                                                          std::string_view flag) {
  std::vector<std::pair<std::string, double>> patterns;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    const auto value =
        equals == std::string::npos ? std::nullopt : number_in<double>(std::string_view(text).substr(equals + 1));
    if (!value || !std::isfinite(*value)) refuse("{}: '{}' is not PATTERN=NUMBER", flag, text);
    patterns.emplace_back(text.substr(0, equals), *value);
  }
  return patterns;
}

std::vector<std::pair<std::string, std::int64_t>> read_ranks(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, std::int64_t>> ranks;
  for (const auto& [pattern, rank] : read_patterns(texts, "--rank-of")) {
    if (!(rank >= 1 && rank <= most_adapter_rank && rank == std::floor(rank)))
      refuse("--rank-of: {}={}: use a whole number from 1 to {}", pattern, rank, most_adapter_rank);
    ranks.emplace_back(pattern, static_cast<std::int64_t>(rank));
  }
  return ranks;
}

void add_pattern_options(CLI::App& own, factor_rules& factors) {
  const auto take_ranks = [&](const std::vector<std::string>& texts) { factors.rank_pattern = read_ranks(texts); };
  const auto take_alphas = [&](const std::vector<std::string>& texts) {
    factors.alpha_pattern = read_patterns(texts, "--alpha-of");
  };
  own.add_option_function<std::vector<std::string>>(
         "--rank-of", take_ranks,
         "another rank for layers: PATTERN is a regular expression for the end of their names, as in q_proj=4; may "
         "be repeated")
      ->type_name("PATTERN=N");
  own.add_option_function<std::vector<std::string>>(
         "--alpha-of", take_alphas, "another alpha for layers, by PATTERN as of --rank-of; may be repeated")
      ->type_name("PATTERN=X");
}

void add_adapter_options(CLI::App& own, training_flags& options) {
  own.add_option("--adapter", options.adapter,
                 "the name to publish it as; with --local: a folder for it, as PEFT writes it")
      ->type_name("NAME|DIR");
  own.add_option("--init", options.init, "an adapter to start from; its rank, alpha and targets count")
      ->type_name("PATH");
  own.add_option("--rank", options.lora.factors.rank, "rank of the adapter [8]")->type_name("N");
  own.add_option("--alpha", options.lora.factors.alpha, "the adapter's scale is alpha / rank [16]");
  own.add_flag("--rslora", options.lora.factors.rank_stabilized, "the scale is alpha / sqrt(rank)");
  own.add_option("--dropout", options.run.dropout, "share of the adapter's inputs that is dropped [0]");
  own.add_option("--targets", options.lora.targets,
                 "linear layers to adapt: names, or patterns as of --rank-of [all-linear]")
      ->type_name("NAME")
      ->delimiter(',');
  add_pattern_options(own, options.lora.factors);
}

void add_run_options(CLI::App& own, training_flags& options) {
  training_options& run = options.run;
  const auto take_schedule = [&run](const std::string& name) { run.schedule = schedule_from_name(name); };
  const auto take_precision = [&run](const std::string& name) { run.precision = precision_from_name(name); };
  own.add_option("--epochs", run.epochs, "times that the data is seen [1]")->type_name("N");
  own.add_option("--steps", run.most_steps, "steps instead of epochs")->type_name("N");
  own.add_option("--lr", run.rate, "learning rate [1e-4]");
  own.add_option_function<std::string>("--schedule", take_schedule, "constant, linear or cosine [cosine]");
  own.add_option("--warmup", run.warmup, "steps in which the rate rises [0]")->type_name("N");
  own.add_option("--batch", run.batch_rows, "rows of one pass [4]")->type_name("N");
  own.add_option("--accumulate", run.accumulation, "passes of one step [1]")->type_name("N");
  own.add_option("--decay", run.adam.weight_decay, "weight decay [0]");
  own.add_option("--clip", run.adam.clip, "the gradients' norm is cut to this; 0: never [1]");
  own.add_option("--seed", run.seed, "what everything random is drawn from [0]");
  own.add_option_function<std::string>(
      "--precision", take_precision,
      "of products with quantized weights: served (8 bits), fine (16 bits) or exact (f32) [fine]");
  own.add_flag_callback(
      "--low-memory", [&run] { run.keep_activations = false; }, "compute activations again instead of keeping them");
  own.add_option("--validate-every", options.validate_every, "steps [an epoch]")->type_name("N");
  own.add_option("--checkpoint-every", options.checkpoint_every,
                 "steps, besides those by time: every minute, or as the cluster says")
      ->type_name("N");
  own.add_flag("--resume", options.resume, "go on where a run was stopped");
  own.add_flag("--keep-checkpoint", options.keep_checkpoint, "leave the last checkpoint in the folder");
  own.add_flag("--force", options.force, "replace what the folder has");
  own.add_option("--log", options.log, "a file for a line of JSON after each step")->type_name("FILE");
  own.add_flag("--json", options.json, "print the outcome as JSON");
}

constexpr std::array local_flags{"--init",  "--full", "--fresh", "--out",  "--resume",  "--keep-checkpoint",
                                 "--force", "--log",  "--quant", "--keep", "--threads", "--device"};
constexpr std::array cluster_flags{"--follow", "--connect", "--key", "--best", "--trainers"};
constexpr std::array full_flags{"--fresh", "--out"};
constexpr std::array init_flags{"--rank", "--alpha", "--rslora", "--targets", "--rank-of", "--alpha-of"};
constexpr std::array adapter_flags{"--adapter", "--init",    "--rank",     "--alpha", "--rslora", "--dropout",
                                   "--targets", "--rank-of", "--alpha-of", "--quant", "--keep"};

/// Refuses flags that mean nothing in this kind of training: local or in a cluster, of an adapter or of all weights.
template <class Flags>
void refuse_flags(const CLI::App& own, const Flags& flags, const char* why) {
  for (const char* flag : flags)
    if (own.get_option(flag)->count() > 0) refuse("{} {}", flag, why);
}

/// Refuses numbers by which nothing would be learned, or something else would be done than what was typed.
void check_amounts(const CLI::App& own, const training_options& run) {
  if (own.get_option("--steps")->count() > 0 && run.most_steps < 1)
    refuse("--steps is {}: use 1 or more, or leave it out for --epochs", run.most_steps);
  if (run.row_length < 2) refuse("--length is {}: use 2 or more", run.row_length);
  if (!(run.rate > 0)) refuse("--lr is {}: use a small positive number", run.rate);
}

void check_local_flags(const CLI::App& own, const training_flags& flags) {
  refuse_flags(own, cluster_flags, "is for a cluster: leave it out, or --local");
  if (flags.full) return refuse_flags(own, adapter_flags, "is for an adapter: leave it out, or --full");
  refuse_flags(own, full_flags, "is for --full alone: add that, or leave this out");
  if (!flags.init.empty()) refuse_flags(own, init_flags, "is that of the adapter of --init: leave one of them out");
}

struct train_options {
  training_flags flags;
  connect_options cluster;
  std::string data_name;  ///< what people know the data by; empty: the file's name
  bool follow = false, best = false;
  std::int64_t trainers = 1;
};

/// What a cluster is asked for, without the names of the data's files.
training_spec spec_of(const train_options& asked) {
  const training_flags& flags = asked.flags;
  if (asked.trainers > flags.run.accumulation)
    refuse("--trainers {} share the passes of a step, and it has {}: add --accumulate {}", asked.trainers,
           flags.run.accumulation, asked.trainers);
  training_spec spec;
  spec.adapter = flags.adapter;
  spec.publish_best = asked.best;
  spec.validate_every = flags.validate_every;
  spec.checkpoint_every = flags.checkpoint_every;
  spec.trainers = asked.trainers;
  spec.lora = flags.lora;
  spec.run = flags.run;
  return spec;
}

cluster_training cluster_training_of(const train_options& asked) {
  return {.cluster = asked.cluster,
          .data = asked.flags.data,
          .validation = asked.flags.validation,
          .data_name = asked.data_name,
          .spec = spec_of(asked),
          .follow = asked.follow,
          .json = asked.flags.json};
}

int train_by(const CLI::App& own, const train_options& options) {
  const training_flags& flags = options.flags;
  check_amounts(own, flags.run);
  if (!flags.model.path.empty()) {
    check_local_flags(own, flags);
    return train_locally(flags);
  }
  refuse_flags(own, local_flags, "needs --local MODEL: a cluster trains adapters of its own model");
  if (flags.adapter.empty()) refuse("the adapter has no name: --adapter NAME");
  return train_in_cluster(cluster_training_of(options));
}

/// What comes through standard input is read several times, so it becomes a file.
int train(const CLI::App& own, train_options options) {
  std::string& data = options.flags.data;
  if (data != "-") return train_by(own, options);
  const file_descriptor kept = keep_standard_input();
  const std::string path = data = fmt::format("/proc/self/fd/{}", kept.number());
  options.data_name = standard_input_name;
  try {
    return train_by(own, options);
  } catch (const field_error&) {
    throw;
  } catch (const input_error& error) {
    throw input_error(with_shown_path(error.what(), path, std::string(standard_input_name)));
  }
}

}  // namespace

void add_train(CLI::App& program, command& chosen) {
  auto all = std::make_shared<train_options>();
  training_flags* options = &all->flags;
  CLI::App& own = *program.add_subcommand("train", "Train an adapter in a cluster, or here; or a small model whole");
  own.add_option("--local", options->model.path, "train here, without a cluster: the base model")->type_name("MODEL");
  add_connect(own, all->cluster);
  own.add_flag("--follow", all->follow, "show how it goes until it is over");
  own.add_flag("--best", all->best, "publish the weights that did best with what was held out, not the last ones");
  own.add_option("--trainers", all->trainers, "trainers that share the passes of a step, if there are so many [1]")
      ->type_name("N");
  add_quant(own, options->model);
  add_keep(own, options->model);
  add_threads(own, options->model);
  add_device(own, options->model);
  add_data_options(own, *options);
  add_adapter_options(own, *options);
  own.add_flag("--full", options->full, "train all weights; MODEL is a folder with a configuration and a tokenizer");
  own.add_flag("--fresh", options->fresh, "with --full: draw the weights anew, even if MODEL has some");
  own.add_option("--out", options->out, "with --full: folder that the model is written to")->type_name("DIR");
  add_run_options(own, *options);
  run_when_named(own, chosen, [all, &own] { return train(own, *all); });
}

}  // namespace troupe
