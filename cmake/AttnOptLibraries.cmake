# What attn-opt's libraries are linked with. The build reads it, and so does the installed package, so that a consumer finds
# what the libraries were built with. The includer defines attn_opt_find(NAME args...): find_package, or find_dependency.

# What scripts/setup builds is found without being told where it is.
if(DEFINED ENV{ATTN_OPT_CACHE})
  set(attn_opt_cache "$ENV{ATTN_OPT_CACHE}")
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(attn_opt_cache "$ENV{XDG_CACHE_HOME}/attn-opt")
else()
  set(attn_opt_cache "$ENV{HOME}/.cache/attn-opt")
endif()
list(APPEND CMAKE_PREFIX_PATH "${attn_opt_cache}/onnx-1.23.2")

# attn_opt_library(NAME FILE): attn_opt::NAME, a library without a package file.
function(attn_opt_library name file)
  if(NOT TARGET attn_opt::${name})
    add_library(attn_opt::${name} INTERFACE IMPORTED)
    target_link_libraries(attn_opt::${name} INTERFACE ${file})
  endif()
endfunction()

# ONNX's own package file does not find Protobuf when ONNX uses it as a shared library, so it comes first. Recent
# versions install a package file, which alone knows that they need Abseil; older ones are found by CMake's module.
find_package(Protobuf CONFIG QUIET)
if(NOT TARGET protobuf::libprotobuf)
  attn_opt_find(Protobuf)
endif()
attn_opt_find(ONNX 1.23.2)
attn_opt_find(tl-expected)
attn_opt_find(fmt)
attn_opt_find(nlohmann_json)
# Site verification multiplies small matrices: OpenBLAS without threads, whose start alone takes longer than most runs.
find_library(ATTN_OPT_BLAS NAMES libopenblas.a PATH_SUFFIXES openblas-serial)
if(NOT ATTN_OPT_BLAS)
  set(BLA_VENDOR OpenBLAS)
  attn_opt_find(BLAS)
  set(ATTN_OPT_BLAS BLAS::BLAS CACHE STRING "" FORCE)
endif()
attn_opt_library(blas ${ATTN_OPT_BLAS})
# NumPy's archives are zip files.
attn_opt_find(ZLIB)
find_library(ATTN_OPT_MINIZIP NAMES libminizip.a minizip)
if(ATTN_OPT_MINIZIP)
  attn_opt_library(minizip ${ATTN_OPT_MINIZIP})
endif()
# RegexFullMatch speaks RE2's syntax. Recent versions install a package file, which alone knows that they need Abseil.
find_package(Threads QUIET)
find_package(re2 CONFIG QUIET)
if(TARGET re2::re2)
  attn_opt_library(re2 re2::re2)
else()
  find_path(ATTN_OPT_RE2_INCLUDE re2/re2.h)
  find_library(ATTN_OPT_RE2 NAMES libre2.a re2)
  # Objects of Debian's archive cannot be part of a shared library, such as the Python module.
  find_library(ATTN_OPT_RE2_SHARED NAMES re2)
  if(ATTN_OPT_RE2 AND ATTN_OPT_RE2_SHARED)
    attn_opt_library(re2 "$<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>,${ATTN_OPT_RE2},${ATTN_OPT_RE2_SHARED}>")
  endif()
endif()
# Graphviz places the drawings of reports. Its layout is a plugin, which lies in a folder of its own; it is linked, so that no file
# of the machine need say where it is. -DATTN_OPT_GRAPHVIZ=OFF does without.
if(NOT DEFINED ATTN_OPT_GRAPHVIZ OR ATTN_OPT_GRAPHVIZ)
  find_path(ATTN_OPT_GRAPHVIZ_INCLUDE graphviz/gvc.h)
  find_library(ATTN_OPT_GVC NAMES gvc)
  find_library(ATTN_OPT_CGRAPH NAMES cgraph)
  find_library(ATTN_OPT_CDT NAMES cdt)
  find_library(ATTN_OPT_DOT_LAYOUT NAMES gvplugin_dot_layout PATH_SUFFIXES graphviz)
  if(ATTN_OPT_GRAPHVIZ_INCLUDE AND ATTN_OPT_GVC AND ATTN_OPT_CGRAPH AND ATTN_OPT_CDT AND ATTN_OPT_DOT_LAYOUT)
    attn_opt_library(graphviz "${ATTN_OPT_DOT_LAYOUT};${ATTN_OPT_GVC};${ATTN_OPT_CGRAPH};${ATTN_OPT_CDT}")
  endif()
endif()
