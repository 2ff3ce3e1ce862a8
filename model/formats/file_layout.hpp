#pragma once
#include <cstdint>
#include <vector>

namespace troupe {

/// Where a file has the parts of a layer, if it counts them as layers of their own.
struct file_layer {
  std::int64_t mixer = 0;
  std::int64_t mlp = -1;  ///< -1: the layer has none
};

/// How files of a model, and adapters of it, have what is of one form here. What the family decides is set by
/// set_family_traits.
struct file_layout {
  std::vector<file_layer> layers;      ///< per layer; empty: the file's layers are ours, and have mlps
  bool joined_qkv = false;             ///< a GGUF file has q, k and v (of linear attention z, too) in one tensor
  bool joined_gates_and_ups = false;   ///< a GGUF file has those of all experts in one tensor
  bool experts_in_one_tensor = false;  ///< a folder has all experts' gates and ups so, and all downs
  bool sees_pictures = false;          ///< it is part of a model that does: PEFT's names of its layers say so
  /// The class that the model was trained with turns neighbours in a head: its q and k are put in order when they are
  /// read, and what an adapter adds to them (row_order.hpp).
  bool turns_neighbours = false;
  bool gguf_turns_neighbours = false;  ///< only llama.cpp does: its converter puts q and k in that order
  bool norms_lack_one = false;         ///< a folder has of norms what is added to one
  bool is_conv1d = false;              ///< linear layers of its class are [in, out]
};

}  // namespace troupe
