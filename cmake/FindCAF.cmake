# Makes CAF::core from headers and library, since CAF 0.17 comes without a CMake file.
find_path(CAF_INCLUDE_DIR caf/all.hpp)
find_library(CAF_CORE_LIBRARY caf_core)
if(CAF_INCLUDE_DIR)
  file(STRINGS ${CAF_INCLUDE_DIR}/caf/config.hpp CAF_VERSION_LINE REGEX "^#define CAF_VERSION [0-9]+")
  string(REGEX REPLACE "[^0-9]" "" CAF_VERSION_NUMBER "${CAF_VERSION_LINE}")
  math(EXPR CAF_MAJOR "${CAF_VERSION_NUMBER} / 10000")
  math(EXPR CAF_MINOR "${CAF_VERSION_NUMBER} / 100 % 100")
  math(EXPR CAF_PATCH "${CAF_VERSION_NUMBER} % 100")
  set(CAF_VERSION ${CAF_MAJOR}.${CAF_MINOR}.${CAF_PATCH})
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CAF REQUIRED_VARS CAF_CORE_LIBRARY CAF_INCLUDE_DIR VERSION_VAR CAF_VERSION)

if(CAF_FOUND AND NOT TARGET CAF::core)
  add_library(CAF::core UNKNOWN IMPORTED)
  set_target_properties(CAF::core PROPERTIES
    IMPORTED_LOCATION ${CAF_CORE_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${CAF_INCLUDE_DIR}
    INTERFACE_COMPILE_DEFINITIONS CAF_ENABLE_TYPE_ID_CHECKS)
endif()
