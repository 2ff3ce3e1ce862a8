#include "bench/many_adapters.hpp"

#include <cmath>
#include <filesystem>
#include <random>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "bench/adapter_loader.hpp"
#include "bench/percentiles.hpp"
#include "bench/random/random_adapter.hpp"
#include "bench/temporary_folder.hpp"
#include "bench/timing.hpp"

namespace troupe::bench {
namespace {

/// A folder of adapters that is gone with this object.
class adapter_folder {
 public:
  adapter_folder(const model_config& config, const adapters_bench& adapters) {
    for (std::uint32_t i = 1; i <= static_cast<std::uint32_t>(adapters.on_disk); ++i) {
      adapters.check();
      write_random_adapter(of(adapter_version(i)), config, adapters.rank, i);
    }
  }

  std::filesystem::path of(adapter_version version) const {
    return folder_.path() / fmt::format("{:04}", version.value);
  }

 private:
  temporary_folder folder_{"troupe-bench-adapters"};
};

/// Every request asks for a random adapter; the lower its number, the more often it is asked for.
std::vector<timed_request> skewed_load(const load_place& place, const adapters_bench& adapters) {
  std::vector<double> weights;
  for (int i = 1; i <= adapters.on_disk; ++i) weights.push_back(std::pow(i, -adapters.skew));
  std::discrete_distribution<int> popular(weights.begin(), weights.end());
  std::mt19937 random(1);
  std::vector<timed_request> load;
  for (int i = 0; i < adapters.requests; ++i) {
    const auto adapter = adapter_version(static_cast<std::uint32_t>(popular(random) + 1));
    load.push_back(
        {0, random_tokens(adapters.prompt, place.model->config.vocab_size, load.size()), adapters.answer, adapter});
  }
  return load;
}

struct adapter_run {
  load_figures load;
  adapter_residency::statistics residency;
};

engine_options options_for(const load_place& place, const adapters_bench& adapters) {
  return engine_options_for(place, adapters.prompt + adapters.answer + 1, adapters.sequences);
}

/// Twice as many clients as run at a time: somebody always waits.
std::size_t clients_for(const adapters_bench& adapters) {
  return 2 * to_size(adapters.sequences);
}

/// The run in which all versions are in memory. Only as many of them differ as the other run holds, which makes this
/// one look better than it is.
load_figures run_resident(const load_place& place, const adapters_bench& adapters,
                          const std::vector<timed_request>& load) {
  engine serving(place.model, options_for(place, adapters), place.with);
  std::vector<std::shared_ptr<const lora_adapter>> different;
  for (int i = 1; i <= std::min(adapters.on_disk, adapters.in_memory); ++i)
    different.push_back(random_adapter(*place.model, adapters.rank, static_cast<std::uint32_t>(i)));
  for (int i = 1; i <= adapters.on_disk; ++i)
    serving.add_adapter(adapter_version(static_cast<std::uint32_t>(i)), different[to_size(i) % different.size()]);
  return replay(serving, place, load, clients_for(adapters), {.before_step = [&](engine&) { adapters.check(); }});
}

adapter_run run_from_disk(const load_place& place, const adapters_bench& adapters, const adapter_folder& folder,
                          const std::vector<timed_request>& load, std::int64_t bytes) {
  const model_config& config = place.model->config;
  adapter_loader loader({.bytes = bytes * adapters.in_memory}, [&](adapter_version version) {
    return std::make_shared<lora_adapter>(read_adapter(folder.of(version), config), config.layers,
                                          precision_beside(place.model->quantization));
  });
  for (int i = 1; i <= adapters.on_disk; ++i)
    if (const auto refused = loader.declare(adapter_version(static_cast<std::uint32_t>(i)), bytes))
      refuse("adapters in memory: one takes {} bytes, the budget is {}", refused->bytes, refused->budget);
  engine_options chosen = options_for(place, adapters);
  chosen.scheduler.is_known = [&](adapter_version version) { return loader.is_known(version); };
  chosen.scheduler.is_ready = [&](adapter_version version) { return loader.is_ready(version); };
  chosen.scheduler.max_adapters = adapters.in_memory;
  engine serving(place.model, chosen, place.with);
  const adapter_loader::changes changes{
      .add = [&](adapter_version version, auto adapter) { serving.add_adapter(version, std::move(adapter)); },
      .remove = [&](adapter_version version) { serving.remove_adapter(version); },
      .failed = [](adapter_version version, const std::string& why) { refuse("adapter {}: {}", version.value, why); }};
  const auto running = [&](adapter_version version) { return serving.scheduler().is_running(version); };
  const replay_hooks hooks{.before_step =
                               [&](engine&) {
                                 adapters.check();
                                 loader.exchange(running, changes);
                               },
                           .idle = [&] { return loader.wait(); }};
  load_figures figures = replay(serving, place, load, clients_for(adapters), hooks);
  return {std::move(figures), loader.residency().stats()};
}

}  // namespace

void run_many_adapters(const load_place& place, const adapters_bench& adapters, const report& out) {
  const model_config& config = place.model->config;
  const auto bytes = static_cast<std::int64_t>(random_adapter(*place.model, adapters.rank, 1)->bytes());
  out.title(
      fmt::format("{} adapters of rank {} on disk, {:.1f} MB each in memory, room for {}; {} requests, skew {}; {} "
                  "tokens of prompt and {} of answer; {} sequences at a time, as many more wait",
                  adapters.on_disk, adapters.rank, static_cast<double>(bytes) / 1e6, adapters.in_memory,
                  adapters.requests, adapters.skew, adapters.prompt, adapters.answer, adapters.sequences));
  const auto load = skewed_load(place, adapters);
  const load_figures resident = run_resident(place, adapters, load);
  out.add(row_of("all in memory", resident));
  const adapter_folder folder(config, adapters);
  const adapter_run disk = run_from_disk(place, adapters, folder, load, bytes);
  out.add(row_of(fmt::format("room for {}", adapters.in_memory), disk.load));
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
