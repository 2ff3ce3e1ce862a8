#pragma once
#include <malloc.h>

namespace troupe {

/// From now on freed blocks of 2 MiB and more go back to the system at once, and what is free at a heap's end soon. By
/// itself glibc keeps ever larger blocks once some were freed: after a few uploads a process would stay as large as it
/// was while they came.
inline void return_large_blocks() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 2 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

}  // namespace troupe
