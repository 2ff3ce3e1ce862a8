// Training on a GPU. A build without CUDA has this function too: there it refuses.
#pragma once
#include <memory>

#include "model/train/passes/train_pass.hpp"

namespace troupe {

/// Throws input_error where `chosen` asks for what no GPU does, or what this one has no memory for.
std::unique_ptr<train_pass> make_cuda_train_pass(const trained_model& model, const parameter_set& parameters,
                                                 const compute& with, train_pass::options chosen);

}  // namespace troupe
