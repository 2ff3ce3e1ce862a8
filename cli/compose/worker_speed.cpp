#include "cli/compose/worker_speed.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/to_size.hpp"
#include "cluster/launch/machine.hpp"
#include "model/arch/decoder.hpp"
#include "model/ops/isa.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr int row_count = 4;

/// Sequences of one token each, as in a step that decodes.
class measured_pass {
 public:
  measured_pass(std::shared_ptr<const loaded_model> model, int threads, device_id device)
      : layers_(std::min<std::int64_t>(model->config.layers, 4)),
        pool_(threads),
        shard_(make_decoder(std::move(model),
                            {.layers = layers_, .max_rows = row_count, .blocks = row_count, .device = device},
                            {pool_, kernels()})),
        hidden_(to_size(row_count * shard_->hidden_stride())) {
    std::iota(blocks_.begin(), blocks_.end(), 0);
    for (int row = 0; row < row_count; ++row) sequences_.push_back({row, 1, 0, &blocks_[to_size(row)], nullptr});
  }

  /// Layers a second in the best of a few short runs; other programs slow some of them down.
  double speed() {
    using steady = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds of_one_run(8);
    run();
    double best = 0;
    for (int i = 0; i < 4; ++i) {
      const auto begun = steady::now();
      std::int64_t done = 0;
      auto now = begun;
      for (; now - begun < of_one_run; now = steady::now(), done += layers_) run();
      best = std::max(best, static_cast<double>(done) / std::chrono::duration<double>(now - begun).count());
    }
    return best;
  }

 private:
  void run() { shard_->run({sequences_, row_count}, hidden_.data()); }

  std::int64_t layers_;
  thread_pool pool_;
  std::unique_ptr<decoder> shard_;
  aligned_buffer<float> hidden_;
  std::array<std::int32_t, row_count> blocks_{};
  std::vector<pass_sequence> sequences_;
};

double rounded(double speed) {
  const double step = std::log(1.1);
  return std::exp(std::round(std::log(std::max(speed, 1e-3)) / step) * step);
}

std::optional<double> read(const fs::path& file) {
  double speed = 0;
  std::ifstream from(file);
  if (!(from >> speed) || !std::isfinite(speed) || speed <= 0) return {};
  return speed;
}

/// Where two workers start together, the first one's file stays.
void keep(const fs::path& file, double speed) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const fs::path own = file.string() + fmt::format(".{}", ::getpid());
  std::ofstream(own) << fmt::format("{}\n", speed);
  if (::link(own.c_str(), file.c_str()) != 0 && !read(file)) fs::rename(own, file, ignored);
  fs::remove(own, ignored);
}

fs::path file_for(model_id fingerprint, int threads, device_id device) {
  const fs::path folder = cache_folder();
  const std::string host = machine_name();
  if (folder.empty() || host.empty()) return {};
  const std::string computes = device.is_cpu() ? kernels().isa : name_of(device);
  return folder / fmt::format("speed-{}-{}-{}-{:016x}", host, computes, threads, fingerprint.value);
}

}  // namespace

double worker_speed(const std::shared_ptr<const loaded_model>& model, model_id fingerprint, int threads,
                    device_id device) {
  const fs::path file = file_for(fingerprint, threads, device);
  if (const auto known = file.empty() ? std::nullopt : read(file)) return *known;
  const double speed = rounded(measured_pass(model, threads, device).speed());
  if (file.empty()) return speed;
  keep(file, speed);
  return read(file).value_or(speed);
}

}  // namespace troupe
