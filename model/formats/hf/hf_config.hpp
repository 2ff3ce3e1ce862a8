#pragma once
#include <filesystem>
#include <string>
#include <string_view>

#include "model/formats/model_config.hpp"

namespace troupe {

/// Reads a Hugging Face config.json (and generation_config.json beside it, for end tokens) or refuses it by the
/// field that is missing, wrong or unsupported.
model_config read_hf_config(const std::filesystem::path& folder);
model_config parse_hf_config(std::string_view json, const std::string& where);

}  // namespace troupe
