#pragma once
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include <sys/mman.h>

#include "base/rounding.hpp"

namespace troupe {

/// Zeroed memory at a cache line's start, for plain types; its size never changes.
template <class T>
class aligned_buffer {
 public:
  aligned_buffer() = default;
  explicit aligned_buffer(std::size_t size) : size_(size) {
    const std::size_t bytes = rounded_up(size * sizeof(T), cache_line);
    if (bytes == 0) return;
    const std::size_t alignment = bytes < huge_page ? cache_line : huge_page;
    data_.reset(static_cast<T*>(std::aligned_alloc(alignment, rounded_up(bytes, alignment))));
    if (!data_) throw std::bad_alloc();
    // Large memory is read in pieces that lie far apart: with small pages each would cost a walk through the page
    // table. What fills no huge page at its end takes small ones.
    if (bytes >= huge_page) ::madvise(static_cast<void*>(data_.get()), bytes / huge_page * huge_page, MADV_HUGEPAGE);
    std::memset(static_cast<void*>(data_.get()), 0, bytes);
  }

  T* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) const { return data_.get()[i]; }

 private:
  static constexpr std::size_t cache_line = 64, huge_page = 2 << 20;
  struct freeing {
    void operator()(T* p) const { std::free(p); }
  };
  std::unique_ptr<T, freeing> data_;
  std::size_t size_ = 0;
};

}  // namespace troupe
