#include "bench/many_adapters.hpp"

#include <cmath>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "bench/adapter_loader.hpp"
#include "bench/percentiles.hpp"
#include "bench/random_adapter.hpp"
#include "bench/temporary_folder.hpp"
#include "bench/timing.hpp"

namespace troupe::bench {
namespace {

/// A folder of adapters that is gone with this object.
class adapter_folder {
 public:
  adapter_folder(const model_config& config, int count, std::int64_t rank) {
    for (std::uint32_t i = 1; i <= static_cast<std::uint32_t>(count); ++i)
      write_random_adapter(of(adapter_version(i)), config, rank, i);
  }

  std::filesystem::path of(adapter_version version) const {
    return folder_.path() / fmt::format("{:04}", version.value);
  }

 private:
  temporary_folder folder_{"troupe-bench-adapters"};
};

/// Every request asks for a random adapter; the lower its number, the more often it is asked for.
std::vector<timed_request> skewed_load(const load_place& place, const engine_bench& options) {
  std::vector<double> weights;
  for (int i = 1; i <= options.adapters_on_disk; ++i) weights.push_back(std::pow(i, -options.adapter_skew));
  std::discrete_distribution<int> popular(weights.begin(), weights.end());
  std::mt19937 random(1);
  std::vector<timed_request> load;
  for (int i = 0; i < options.requests; ++i) {
    const auto adapter = adapter_version(static_cast<std::uint32_t>(popular(random) + 1));
    load.push_back({0, random_tokens(options.decode_context, place.model->config.vocab_size, load.size()),
                    options.decode, adapter});
  }
  return load;
}

struct adapter_run {
  load_figures load;
  adapter_residency::statistics residency;
};

engine_options options_for(const load_place& place, const engine_bench& options) {
  return engine_options_for(place, options.decode_context + options.decode + 1, options.sequences);
}

/// Twice as many clients as run at a time: somebody always waits.
std::size_t clients_for(const engine_bench& options) {
  return 2 * to_size(options.sequences);
}

/// The run in which all versions are in memory. Only as many of them differ as the other run holds, which makes this
/// one look better than it is.
load_figures run_resident(const load_place& place, const engine_bench& options,
                          const std::vector<timed_request>& load) {
  engine serving(place.model, options_for(place, options), place.with);
  std::vector<std::shared_ptr<const lora_adapter>> different;
  for (int i = 1; i <= std::min(options.adapters_on_disk, options.adapters_in_memory); ++i)
    different.push_back(random_adapter(*place.model, options.adapter_rank, static_cast<std::uint32_t>(i)));
  for (int i = 1; i <= options.adapters_on_disk; ++i)
    serving.add_adapter(adapter_version(static_cast<std::uint32_t>(i)), different[to_size(i) % different.size()]);
  return replay(serving, place, load, clients_for(options));
}

adapter_run run_from_disk(const load_place& place, const engine_bench& options, const adapter_folder& folder,
                          const std::vector<timed_request>& load, std::int64_t bytes) {
  const model_config& config = place.model->config;
  adapter_loader loader({.bytes = bytes * options.adapters_in_memory}, [&](adapter_version version) {
    return std::make_shared<lora_adapter>(read_adapter(folder.of(version), config), config.layers,
                                          precision_beside(place.model->quantization));
  });
  for (int i = 1; i <= options.adapters_on_disk; ++i)
    if (const auto refused = loader.declare(adapter_version(static_cast<std::uint32_t>(i)), bytes))
      refuse("adapters in memory: one takes {} bytes, the budget is {}", refused->bytes, refused->budget);
  engine_options chosen = options_for(place, options);
  chosen.scheduler.is_known = [&](adapter_version version) { return loader.is_known(version); };
  chosen.scheduler.is_ready = [&](adapter_version version) { return loader.is_ready(version); };
  chosen.scheduler.max_adapters = options.adapters_in_memory;
  engine serving(place.model, chosen, place.with);
  const adapter_loader::changes changes{
      .add = [&](adapter_version version, auto adapter) { serving.add_adapter(version, std::move(adapter)); },
      .remove = [&](adapter_version version) { serving.remove_adapter(version); },
      .failed = [](adapter_version version, const std::string& why) { refuse("adapter {}: {}", version.value, why); }};
  const auto running = [&](adapter_version version) { return serving.scheduler().is_running(version); };
  const replay_hooks hooks{.before_step = [&](engine&) { loader.exchange(running, changes); },
                           .idle = [&] { return loader.wait(); }};
  load_figures figures = replay(serving, place, load, clients_for(options), hooks);
  return {std::move(figures), loader.residency().stats()};
}

}  // namespace

void run_many_adapters(const load_place& place, const engine_bench& options, const report& out) {
  const model_config& config = place.model->config;
  const auto bytes = static_cast<std::int64_t>(random_adapter(*place.model, options.adapter_rank, 1)->bytes());
  out.title(fmt::format(
      "{} adapters of rank {} on disk, {:.1f} MB each in memory, room for {}; {} requests, skew {}; {} "
      "tokens of prompt and {} of answer; {} sequences at a time, as many more wait",
      options.adapters_on_disk, options.adapter_rank, static_cast<double>(bytes) / 1e6, options.adapters_in_memory,
      options.requests, options.adapter_skew, options.decode_context, options.decode, options.sequences));
  const auto load = skewed_load(place, options);
  const load_figures resident = run_resident(place, options, load);
  out.add(row_of("all in memory", resident));
  const adapter_folder folder(config, options.adapters_on_disk, options.adapter_rank);
  const adapter_run disk = run_from_disk(place, options, folder, load, bytes);
  out.add(row_of(fmt::format("room for {}", options.adapters_in_memory), disk.load));
  const auto longest = [](const load_figures& figures) { return percentile(figures.first_token, 1.0); };
  out.add({"room for few against all in memory",
           {{"of tokens/s", resident.seconds / disk.load.seconds},
            {"loads", static_cast<double>(disk.residency.loads)},
            {"s longest wait", longest(disk.load)},
            {"s in memory", longest(resident)},
            {"steps longest wait", static_cast<double>(disk.load.longest_wait)},
            {"steps in memory", static_cast<double>(resident.longest_wait)}}});
}

}  // namespace troupe::bench
