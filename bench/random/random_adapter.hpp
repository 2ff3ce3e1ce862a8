#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>

#include "model/arch/loaded_model.hpp"
#include "model/lora/adapter.hpp"

namespace troupe::bench {

/// Random factors for every linear layer, in memory, as a file in f32 would be kept beside this model.
std::shared_ptr<const lora_adapter> random_adapter(const loaded_model& model, std::int64_t rank, std::uint32_t seed);

/// The same as PEFT writes it, in bf16.
void write_random_adapter(const std::filesystem::path& folder, const model_config& config, std::int64_t rank,
                          std::uint32_t seed);

}  // namespace troupe::bench
