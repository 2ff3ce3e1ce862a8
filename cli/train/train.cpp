#include <array>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "base/field_error.hpp"
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
  own.add_option(
         "--rank-of", options.rank_patterns,
         "another rank for layers: PATTERN is a regular expression for the end of their names, as in q_proj=4; may "
         "be repeated")
      ->type_name("PATTERN=N");
  own.add_option("--alpha-of", options.alpha_patterns,
                 "another alpha for layers, by PATTERN as of --rank-of; may be repeated")
      ->type_name("PATTERN=X");
}

void add_run_options(CLI::App& own, training_flags& options) {
  training_options& run = options.run;
  own.add_option("--epochs", run.epochs, "times that the data is seen [1]")->type_name("N");
  own.add_option("--steps", run.most_steps, "steps instead of epochs")->type_name("N");
  own.add_option("--lr", run.rate, "learning rate [1e-4]");
  own.add_option("--schedule", options.schedule, "constant, linear or cosine [cosine]");
  own.add_option("--warmup", run.warmup, "steps in which the rate rises [0]")->type_name("N");
  own.add_option("--batch", run.batch_rows, "rows of one pass [4]")->type_name("N");
  own.add_option("--accumulate", run.accumulation, "passes of one step [1]")->type_name("N");
  own.add_option("--decay", run.adam.weight_decay, "weight decay [0]");
  own.add_option("--clip", run.adam.clip, "the gradients' norm is cut to this; 0: never [1]");
  own.add_option("--seed", run.seed, "what everything random is drawn from [0]");
  own.add_option("--precision", options.precision,
                 "of products with quantized weights: served (8 bits), fine (16 bits) or exact (f32) [fine]");
  own.add_flag("--low-memory", options.low_memory, "compute activations again instead of keeping them");
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

/// What a cluster is asked for, without the names of the data's files.
training_spec spec_of(const training_flags& asked, bool best, std::int64_t trainers) {
  if (trainers > asked.run.accumulation)
    refuse("--trainers {} share the passes of a step, and it has {}: add --accumulate {}", trainers,
           asked.run.accumulation, trainers);
  training_flags chosen = settled(asked);
  training_spec spec;
  spec.adapter = std::move(chosen.adapter);
  spec.publish_best = best;
  spec.validate_every = chosen.validate_every;
  spec.checkpoint_every = chosen.checkpoint_every;
  spec.trainers = trainers;
  spec.lora = std::move(chosen.lora);
  spec.run = std::move(chosen.run);
  return spec;
}

struct train_options {
  training_flags flags;
  cluster_training cluster;
  bool best = false;
  std::int64_t trainers = 1;
};

int train_by(const CLI::App& own, train_options options) {
  training_flags& flags = options.flags;
  check_amounts(own, flags.run);
  if (!flags.model.path.empty()) {
    check_local_flags(own, flags);
    return train_locally(flags);
  }
  refuse_flags(own, local_flags, "needs --local MODEL: a cluster trains adapters of its own model");
  if (flags.adapter.empty()) refuse("the adapter has no name: --adapter NAME");
  cluster_training& cluster = options.cluster;
  cluster.data = flags.data;
  cluster.validation = flags.validation;
  cluster.json = flags.json;
  cluster.spec = spec_of(flags, options.best, options.trainers);
  return train_in_cluster(cluster);
}

/// What comes through standard input is read several times, so it becomes a file.
int train(const CLI::App& own, train_options options) {
  std::string& data = options.flags.data;
  if (data != "-") return train_by(own, std::move(options));
  const file_descriptor kept = keep_standard_input();
  const std::string path = data = fmt::format("/proc/self/fd/{}", kept.number());
  options.cluster.data_name = standard_input_name;
  try {
    return train_by(own, std::move(options));
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
  add_connect(own, all->cluster.cluster);
  own.add_flag("--follow", all->cluster.follow, "show how it goes until it is over");
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
