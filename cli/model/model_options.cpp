#include "cli/model/model_options.hpp"

#include <algorithm>
#include <new>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/blocks.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/size_text.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "model/arch/device.hpp"
#include "model/arch/kv_storage.hpp"
#include "model/ops/isa.hpp"
#include "model/ops/kernels.hpp"

namespace troupe {
namespace {

constexpr int most_threads = 1024;
constexpr std::int64_t longest_chunk = 512;

kv_kind kv_of(const model_options& options, const loaded_model& model) {
  return options.kv.empty() ? default_kv(model) : kv_from_name(options.kv, "--kv");
}

std::int64_t context_of(const model_options& options, const model_config& config) {
  if (options.context < 0) refuse("--context is {}: use 1 or more", options.context);
  if (options.context > config.context)
    refuse("--context is {}: {} has {} positions: ask for no more", options.context, options.path, config.context);
  return options.context ? options.context : config.context;
}

std::unique_ptr<const lora_adapter> open_adapter(const model_options& options, const loaded_model& model) {
  if (options.adapter.empty()) return nullptr;
  if (!path_exists(options.adapter))
    refuse(
        "--adapter {}: there is none: name a folder as PEFT writes it, or a .gguf file; an adapter of a cluster "
        "answers "
        "by troupe submit --adapter NAME",
        options.adapter);
  return std::make_unique<const lora_adapter>(read_adapter(options.adapter, model.config), model.config.layers,
                                              precision_beside(model.quantization));
}

}  // namespace

void add_model(CLI::App& command, model_options& options) {
  command.add_option("MODEL", options.path, "a Hugging Face folder, a .gguf file, or what troupe quantize wrote")
      ->required();
}

void add_keep(CLI::App& command, model_options& options) {
  command.add_option("--keep", options.keep, "layers to leave unquantized, by any part of their name; may be repeated")
      ->type_name("NAME");
}

void add_kv(CLI::App& command, model_options& options) {
  command
      .add_option("--kv", options.kv,
                  "what keys and values are cached in: f16, f32 or int8 [f32 for f32 models, else f16]")
      ->type_name("KIND");
}

void add_context(CLI::App& command, model_options& options) {
  command.add_option("--context", options.context, "positions that a sequence may have [the model's]")->type_name("N");
}

void add_threads(CLI::App& command, model_options& options) {
  const auto take = [&options](int count) {
    if (count < 1 || count > most_threads) refuse("--threads is {}: use 1 to {}", count, most_threads);
    options.threads = count;
  };
  command.add_option_function<int>("--threads", take, "threads that compute [all processors]")->type_name("N");
}

void add_device(CLI::App& command, model_options& options) {
  command.add_option("--device", options.device, "what computes: cpu, or a GPU as cuda:0 [cpu]")->type_name("DEVICE");
}

void add_quant(CLI::App& command, model_options& options) {
  command.add_option("--quant", options.quant, fmt::format("{} [as the file has it]", scheme_names()))
      ->type_name("SCHEME");
}

void add_model_options(CLI::App& command, model_options& options) {
  add_model(command, options);
  add_quant(command, options);
  add_keep(command, options);
  command.add_option("--adapter", options.adapter, "a LoRA adapter: a folder as PEFT writes it, or a .gguf file")
      ->type_name("PATH");
  add_kv(command, options);
  add_context(command, options);
  add_threads(command, options);
  add_device(command, options);
}

void check_keep(const model_options& options) {
  if (!options.keep.empty() && options.quant.empty())
    refuse("--keep without --quant: name the scheme of the other layers");
}

load_options load_options_of(const model_options& options) {
  load_options chosen;
  if (!options.quant.empty()) chosen.quant = scheme_from_name(options.quant, "--quant");
  check_keep(options);
  chosen.keep = options.keep;
  return chosen;
}

device_id device_of(const model_options& options) {
  const auto device = device_from_name(options.device);
  if (!device) refuse("--device: unknown device '{}': use cpu, cuda:0, cuda:1 …", options.device);
  check_device(*device, "--device " + options.device);
  return *device;
}

int thread_count(const model_options& options) {
  return options.threads ? options.threads : available_processors();
}

std::shared_ptr<const loaded_model> load_with_progress(const std::string& path, load_options options,
                                                       thread_pool& pool) {
  const interrupt_guard guard;
  progress bar("packing " + path);
  options.progress = [&](std::int64_t done, std::int64_t total) { bar.update(done, total); };
  if (!options.warn) options.warn = [](const std::string& line) { write_error(fmt::format("troupe: {}\n", line)); };
  auto model = load_model(path, options, pool);
  check_interrupt();
  return model;
}

runtime::runtime(const model_options& options)
    : device_(device_of(options)),
      pool_(thread_count(options)),
      with_{pool_, troupe::kernels()},
      model_(load_with_progress(options.path, load_options_of(options), pool_)),
      adapter_(open_adapter(options, *model_)),
      kv_(kv_of(options, *model_)),
      context_(context_of(options, model_->config)) {}

single_sequence runtime::sequence(std::int64_t positions, std::int64_t longest) {
  const std::int64_t wanted = memory_for(positions);
  const auto what = [&] { return fmt::format("{} positions take {} of memory", positions, size_text(wanted)); };
  if (const auto free = free_memory(device_); free && wanted > *free)
    throw std::runtime_error(fmt::format("{}, {} are free: use a smaller --context", what(), size_text(*free)));
  try {
    const auto chunk = static_cast<int>(std::clamp<std::int64_t>(longest, 1, longest_chunk));
    return single_sequence(model_, {adapter_.get(), chunk, positions, kv_, device_, context_}, with_);
  } catch (const std::bad_alloc&) {
    throw std::runtime_error(what() + ", which are not to be had: use a smaller --context");
  }
}

/// Bytes for keys and values, states, and what each thread's attention is lent.
std::int64_t runtime::memory_for(std::int64_t positions) const {
  const model_config& config = model_->config;
  const std::int64_t scratch = pool_.threads() * attention_scratch(positions, config.widest_head());
  return blocks_for(positions) * kv_storage::bytes_per_block(config, kv_) + config.state_bytes() +
         scratch * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace troupe
