#include <algorithm>
#include <array>
#include <vector>

#include "base/to_size.hpp"
#include "model/formats/model_files.hpp"

namespace troupe {
namespace {

constexpr std::int64_t tile_rows = 16;
constexpr std::int64_t tile_columns = 256;

/// Every so manieth of the numbers that begin at `from`.
void read_in_turn(dtype type, const std::byte* from, std::int64_t count, std::int64_t step, float* to) {
  if (step == 1) return to_floats(type, from, count, to);
  std::vector<float> all(to_size((count - 1) * step + 1));
  to_floats(type, from, static_cast<std::int64_t>(all.size()), all.data());
  for (std::int64_t i = 0; i < count; ++i) to[i] = all[to_size(i * step)];
}

/// A vector is one row whose elements lie at first_out; its permutation is along that row.
void read_vector(const weight_source& source, float* to) {
  read_in_turn(source.tensor.type, source.raw_row(0), source.ins, source.rows.step, to);
  for (std::int64_t i = 0; i < source.ins; ++i) to[i] = (to[i] + source.rows.plus) * source.rows.times;
  if (source.rows.order.is_ours()) return;
  const std::vector<float> row(to, to + source.ins);
  for (std::int64_t i = 0; i < source.ins; ++i) to[i] = row[to_size(source.rows.order.file_row(i))];
}

/// One tile of a [in, out] tensor: read along the file's rows, written along ours.
void read_tile(const weight_source& source, std::int64_t first, std::int64_t columns, std::int64_t row,
               std::int64_t rows, float* to) {
  std::array<float, tile_rows * tile_columns> tile;
  const auto width = source.tensor.shape[1];
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::array<std::int64_t, 1> before = {(source.rows.first_in + row + i) * width + source.rows.file_row(first)};
    const auto* from = source.tensor.data.data() + byte_size(source.tensor.type, before, source.origin);
    read_in_turn(source.tensor.type, from, columns, source.rows.step, tile.data() + i * tile_columns);
  }
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t i = 0; i < rows; ++i) to[c * source.ins + row + i] = tile[to_size(i * tile_columns + c)];
}

void read_transposed(const weight_source& source, std::int64_t first, std::int64_t count, float* to) {
  for (std::int64_t c = 0; c < count; c += tile_columns)
    for (std::int64_t row = 0; row < source.ins; row += tile_rows)
      read_tile(source, first + c, std::min(tile_columns, count - c), row, std::min(tile_rows, source.ins - row),
                to + c * source.ins);
}

/// Codes are read by whole rows of the file, of each of which our rows take a part.
void read_transposed_codes(const weight_source& source, std::int64_t first, std::int64_t count, float* to) {
  std::vector<float> row(to_size(source.outs));
  for (std::int64_t i = 0; i < source.ins; ++i) {
    source.codes->read_row(source.rows.first_in + i, row.data());
    for (std::int64_t r = 0; r < count; ++r) to[r * source.ins + i] = row[to_size(first + r)];
  }
}

}  // namespace

const std::byte* weight_source::raw_row(std::int64_t row) const {
  if (tensor.shape.size() == 1) {
    const std::array<std::int64_t, 1> before = {rows.first_out + row * ins};
    return tensor.data.data() + byte_size(tensor.type, before, origin);
  }
  const std::array<std::int64_t, 2> before = {rows.file_row(row), ins};
  return tensor.data.data() + byte_size(tensor.type, before, origin);
}

void weight_source::read_rows(std::int64_t first, std::int64_t count, float* to) const {
  if (tensor.shape.size() == 1) {
    if (count > 0) read_vector(*this, to);
    return;
  }
  if (codes && rows.transposed) return read_transposed_codes(*this, first, count, to);
  if (codes) {
    for (std::int64_t row = 0; row < count; ++row) codes->read_row(rows.file_row(first + row), to + row * ins);
    return;
  }
  if (rows.transposed) return read_transposed(*this, first, count, to);
  for (std::int64_t row = 0; row < count; ++row) to_floats(tensor.type, raw_row(first + row), ins, to + row * ins);
}

}  // namespace troupe
