// Adapters as PEFT writes them.
#pragma once
#include <filesystem>
#include <set>
#include <string>

#include "model/lora/adapter_file.hpp"

namespace troupe {

/// What adapter_config.json says besides what is the same for all of ours.
struct peft_description {
  const factor_rules& factors;
  std::set<std::string> targets;
  bool fan_in_fan_out = false;  ///< of GPT-2's class
  std::string base_name = {};
  double dropout = 0;
};

std::string peft_config_text(const peft_description& adapter);

/// Both files, into a folder that is there. `where` is what errors call the adapter.
void write_adapter(const adapter_file& adapter, const model_config& base, const std::filesystem::path& folder,
                   const std::string& where);

}  // namespace troupe
