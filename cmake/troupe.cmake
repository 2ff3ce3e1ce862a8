# The few functions every folder's CMakeLists.txt uses.

# Language level, warnings, sanitizers, output places: the same for every target.
macro(troupe_global_settings)
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_CXX_EXTENSIONS OFF)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # kernels need more and have options of their own
  # Promise 1 needs each float operation as it is written, so the compiler must not fuse multiplications and additions.
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Werror;-ffp-contract=off>")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC treats files that are compiled together as headers, and warns when these have names of their own.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
    # GCC warns wrongly that values of optionals and variants may be uninitialized: 12 at -O1 and with sanitizers and in its
    # own intrinsics headers, 13 at -O2, too.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
    # GCC collects its garbage from 512 MB on instead of 128: large files compile some 5 % faster.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=524288>)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      # GCC 12 warns of overlaps in std::string that cannot happen.
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
    endif()
  endif()
  if(TROUPE_CUDA)
    troupe_cuda_settings()
  endif()
  find_program(CCACHE ccache)
  if(CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
  endif()
  if(TROUPE_SANITIZE)
    add_compile_options(-fsanitize=${TROUPE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${TROUPE_SANITIZE})
    # GCC refuses fences under the thread sanitizer, which does not see them. asio's are beside its mutexes.
    if(TROUPE_SANITIZE MATCHES thread)
      add_compile_definitions(BOOST_ASIO_DISABLE_FENCED_BLOCK)
      troupe_settle_addresses()
    endif()
  endif()
endmacro()

# Programs built with GCC 12's thread sanitizer cannot start if the kernel randomizes addresses widely. Test programs start
# when they are built, too, to list their tests.
macro(troupe_settle_addresses)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE settled ERROR_QUIET)
  if(settled EQUAL 0)
    set(CMAKE_CROSSCOMPILING_EMULATOR setarch -R)
  endif()
endmacro()

# As for C++: every product and sum is rounded where it is written, and warnings are errors.
macro(troupe_cuda_settings)
  if(NOT DEFINED ENV{CUDAARCHS})
    # 90a has what no later GPU can run; those get the code for 8.9 from the driver.
    set(CMAKE_CUDA_ARCHITECTURES "80-real;86-real;89;90a-real" CACHE STRING "GPUs to build for")
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know that nvcc has it
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(kernel_options --expt-relaxed-constexpr -fmad=false -Werror=all-warnings -Xcompiler=-Wall,-Wextra,-Werror)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${kernel_options}>")
endmacro()

# All builds but debug compile many files of a folder together (CMAKE_UNITY_BUILD), so that the libraries' headers are
# read once for all of them. troupe_apart names files of the calling folder to be compiled alone, since another file has
# a name of theirs with another meaning.
function(troupe_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Makes as few batches as CMAKE_UNITY_BUILD_BATCH_SIZE allows, all of about one size: a small last one would read the
# headers for only a few files, and a build waits for its largest one.
function(troupe_even_batches target)
  get_target_property(sources ${target} SOURCES)
  list(LENGTH sources count)
  if(CMAKE_UNITY_BUILD AND count GREATER CMAKE_UNITY_BUILD_BATCH_SIZE)
    math(EXPR batches "(${count} + ${CMAKE_UNITY_BUILD_BATCH_SIZE} - 1) / ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
    math(EXPR size "(${count} + ${batches} - 1) / ${batches}")
    set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# For code that is not hot: -O1 takes a quarter less compile time than -O2.
function(troupe_cold target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# All .cpp files beside the calling CMakeLists.txt, and in the given folders.
function(troupe_sources into)
  list(TRANSFORM ARGN APPEND /*.cpp)
  file(GLOB found CONFIGURE_DEPENDS *.cpp ${ARGN})
  set(${into} ${found} PARENT_SCOPE)
endfunction()

# troupe_library(NAME [FOLDERS inner...] [EXCLUDE files...] [SOURCES more...] [DEPENDS public...] [PRIVATE private...]):
# a static library of the folder's files, but for those excluded, which are named in full.
# Includes are written from the repository's root: "model/ops/matmul.hpp".
function(troupe_library name)
  cmake_parse_arguments(arg "" "" "FOLDERS;EXCLUDE;SOURCES;DEPENDS;PRIVATE" ${ARGN})
  troupe_sources(sources ${arg_FOLDERS})
  if(arg_EXCLUDE)
    list(REMOVE_ITEM sources ${arg_EXCLUDE})
  endif()
  add_library(${name} STATIC ${sources} ${arg_SOURCES})
  troupe_even_batches(${name})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_DEPENDS} PRIVATE ${arg_PRIVATE})
endfunction()

# troupe_kernels(TARGET instruction-sets sources...): compiles the sources once for each and puts all into the library.
# Kernels have -O3 in every build type, since they are unusable without it. There are exceptions where compiling would
# take minutes a file: with sanitizers they have -O1, and never the one that checks every operation; generic kernels,
# whose vectors are arrays, have -O1 always and no sanitizer.
function(troupe_kernels target instruction_sets)
  set(generic_options -O1)
  set(avx2_options -O3 -mavx2 -mfma -mf16c)
  set(avx_vnni_options ${avx2_options} -mavxvnni)
  set(avx512_options -O3 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c
    -mprefer-vector-width=512)
  set(amx_options ${avx512_options} -mamx-tile -mamx-int8)
  if(TROUPE_SANITIZE)
    list(APPEND generic_options -fno-sanitize=all)
    list(APPEND avx2_options -O1 -fno-sanitize=undefined)
    list(APPEND avx_vnni_options -O1 -fno-sanitize=undefined)
    list(APPEND avx512_options -O1 -fno-sanitize=undefined)
    list(APPEND amx_options -O1 -fno-sanitize=undefined)
  endif()
  foreach(isa IN LISTS instruction_sets)
    troupe_kernels_once(${target} ${isa} "${${isa}_options}" ${ARGN})
  endforeach()
endfunction()

# The sources once, in the namespace of an instruction set.
function(troupe_kernels_once target isa options)
  set(kernels ${target}_kernels_${isa})
  add_library(${kernels} OBJECT ${ARGN})
  set_target_properties(${kernels} PROPERTIES UNITY_BUILD OFF)
  target_include_directories(${kernels} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${kernels} PRIVATE TROUPE_ISA=${isa})
  # GCC 12 warns inside its own intrinsics headers, and notes that older versions passed vectors differently.
  target_compile_options(${kernels} PRIVATE ${options} -Wno-psabi $<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${kernels}>)
endfunction()

# troupe_test_program(NAME [COMPUTES] [FOLDERS inner...] DEPENDS libs...): one GoogleTest program. Tests are not optimized,
# since the code that they test is; in release builds those that COMPUTE much themselves have -O1.
function(troupe_test_program name)
  cmake_parse_arguments(arg "COMPUTES" "" "FOLDERS;DEPENDS" ${ARGN})
  troupe_sources(sources ${arg_FOLDERS})
  add_executable(${name} ${sources})
  troupe_even_batches(${name})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_options(${name} PRIVATE $<IF:$<AND:$<BOOL:${arg_COMPUTES}>,$<CONFIG:Release>>,-O1,-O0>)
  # For tests/base/places.hpp.
  target_compile_definitions(${name} PRIVATE
    TROUPE_CONFIGS="${CMAKE_SOURCE_DIR}/configs"
    TROUPE_DOCS="${CMAKE_SOURCE_DIR}/docs"
    TROUPE_FIXTURES="${CMAKE_SOURCE_DIR}/tests/fixtures"
    TROUPE_SHARED_DATA="${CMAKE_SOURCE_DIR}/../shared/data")
endfunction()

# troupe_test([PREFIX text] …): the same, with its tests for ctest. The prefix distinguishes tests that are built twice.
function(troupe_test name)
  cmake_parse_arguments(arg "" "PREFIX" "" ${ARGN})
  troupe_test_program(${name} ${arg_UNPARSED_ARGUMENTS})
  gtest_discover_tests(${name} TEST_PREFIX "${arg_PREFIX}" DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES PROPERTIES TIMEOUT 300)
endfunction()
