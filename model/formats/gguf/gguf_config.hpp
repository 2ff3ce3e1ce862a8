#pragma once
#include "model/formats/gguf/gguf.hpp"
#include "model/formats/model_config.hpp"

namespace troupe {

model_config config_from_gguf(const gguf_file& file);

}  // namespace troupe
