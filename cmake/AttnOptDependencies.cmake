# What scripts/setup builds is found without being told where it is.
if(DEFINED ENV{ATTN_OPT_CACHE})
  set(attn_opt_cache "$ENV{ATTN_OPT_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(attn_opt_cache "$ENV{XDG_CACHE_HOME}/attn-opt")
else()
  set(attn_opt_cache "$ENV{HOME}/.cache/attn-opt")
endif()
list(APPEND CMAKE_PREFIX_PATH "${attn_opt_cache}/onnx-1.23.2")

# attn_opt_find(NAME args...): find_package with an error that says what to do.
macro(attn_opt_find name)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    set(attn_opt_reason "${${name}_NOT_FOUND_MESSAGE}")
    if(${name}_CONSIDERED_VERSIONS)
      string(APPEND attn_opt_reason " Found, but not usable: version ${${name}_CONSIDERED_VERSIONS}.")
    endif()
    string(REPLACE ";" " " attn_opt_wanted "${name};${ARGN}")
    message(FATAL_ERROR "attn-opt needs ${attn_opt_wanted} and CMake does not find it.${attn_opt_reason}\n"
                        "Run scripts/setup, or name its folder in CMAKE_PREFIX_PATH.")
  endif()
endmacro()

# ONNX's own package file does not find Protobuf when ONNX uses it as a shared library, so it comes first. Recent
# versions install a package file, which alone knows that they need Abseil; older ones are found by CMake's module.
find_package(Protobuf CONFIG QUIET)
if(NOT TARGET protobuf::libprotobuf)
  attn_opt_find(Protobuf)
endif()
attn_opt_find(ONNX 1.23.2)
attn_opt_find(tl-expected)
attn_opt_find(CLI11)
attn_opt_find(fmt)
attn_opt_find(spdlog)
attn_opt_find(nlohmann_json)
# Site verification multiplies small matrices: OpenBLAS without threads, whose start alone takes longer than most runs.
find_library(ATTN_OPT_BLAS NAMES libopenblas.a PATH_SUFFIXES openblas-serial)
if(NOT ATTN_OPT_BLAS)
  set(BLA_VENDOR OpenBLAS)
  attn_opt_find(BLAS)
  set(ATTN_OPT_BLAS BLAS::BLAS CACHE STRING "" FORCE)
endif()
# NumPy's archives are zip files.
attn_opt_find(ZLIB)
find_library(ATTN_OPT_MINIZIP NAMES libminizip.a minizip REQUIRED)
# A graph is a great many small allocations. Sanitizers bring an allocator of their own.
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  find_package(mimalloc CONFIG QUIET)
endif()
if(ATTN_OPT_BUILD_TESTS)
  attn_opt_find(GTest)
  include(GoogleTest)
endif()
