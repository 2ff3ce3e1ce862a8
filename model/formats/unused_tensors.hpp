#pragma once
#include <string_view>

#include "model/formats/model_files.hpp"
#include "model/formats/weight_names.hpp"

namespace troupe::detail {

/// Refuses a model whose file has more in a layer than `model.weights` take: it computes something else than would be
/// computed here. Left alone are tensors outside the layers, those of layers beyond the last (which predict several
/// tokens at once), and what is known to change nothing: tables of positions and masks that old releases saved, what
/// quantizers keep beside their codes, scales of caches, and biases of zeros, as GPTQ writes them.
void refuse_unused(const model_files& model, naming names, std::string_view prefix);

}  // namespace troupe::detail
