#include "actors/workers/stage_ranks.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "transport/collective/gloo_ranks.hpp"
#include "transport/collective/nccl_ranks.hpp"

namespace troupe {
namespace {

std::unique_ptr<collective> meet(const start_stage& order, const rank_settings& settings, device_id device,
                                 const std::stop_token& stop) {
  if (!settings.place)
    refuse("this worker shares no stage: tensor is above 1 in the head's file, and must be in the worker's");
  const rank_group group{.name = fmt::format("{}.{}.{}", order.life.replica.value, order.life.epoch.value, order.stage),
                         .rank = static_cast<int>(order.tensor_rank),
                         .size = static_cast<int>(order.tensor_ranks),
                         .place = order.tensor_meeting,
                         .patience = settings.meeting_patience,
                         .stop = stop};
  if (settings.by_nccl) return make_nccl_rank(group, *settings.place, device.gpu, settings.patience);
  return make_gloo_rank(group, *settings.place, settings.patience);
}

/// The last bits of a GPU's sums are not a processor's: what ranks of both kinds make would depend on who makes what.
void refuse_other_devices(collective& ranks, device_id device) {
  std::vector<std::byte> on_gpu(to_size(ranks.size()));
  const std::byte own{!device.is_cpu()};
  on_gpu[to_size(ranks.rank())] = own;
  ranks.all_gather(on_gpu);
  const auto other = std::find_if(on_gpu.begin(), on_gpu.end(), [&](std::byte each) { return each != own; });
  if (other != on_gpu.end())
    refuse(
        "this worker has the device {}, and rank {} of its stage a {}: give all workers of the cluster a GPU as their "
        "device, or none, or use tensor = 1",
        name_of(device), other - on_gpu.begin(), device.is_cpu() ? "GPU" : "processor");
}

}  // namespace

void rank_alarm::ring() {
  const std::lock_guard lock(mutex_);
  ++announced_;
  current_.request_stop();
}

std::stop_token rank_alarm::begin() {
  const std::lock_guard lock(mutex_);
  current_ = std::stop_source();
  if (announced_ > ++begun_) current_.request_stop();
  return current_.get_token();
}

stage_ranks::stage_ranks(const start_stage& order, const rank_settings& settings, device_id device,
                         const std::stop_token& stop)
    : ranks_(meet(order, settings, device, stop)) {
  on_stop_.emplace(stop, [ranks = ranks_.get()] { ranks->interrupt(); });
  refuse_other_devices(*ranks_, device);
}

stage_ranks::~stage_ranks() = default;

void stage_ranks::set_busy(bool is_busy) const {
  ranks_->set_busy(is_busy);
}

tensor_split stage_ranks::split() const {
  tensor_split split;
  split.rank = ranks_->rank();
  split.ranks = ranks_->size();
  split.on_device = ranks_->takes_device_memory();
  split.gather = [ranks = ranks_.get(), bytes = std::vector<std::size_t>()](
                     std::span<float> data, std::span<const std::size_t> ends, int root) mutable {
    bytes.clear();
    for (const std::size_t end : ends) bytes.push_back(end * sizeof(float));
    const auto parts = std::as_writable_bytes(data);
    if (root == tensor_split::everyone)
      ranks->all_gather(parts, bytes);
    else
      ranks->gather(parts, bytes, root);
  };
  return split;
}

}  // namespace troupe
