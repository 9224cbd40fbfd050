# attn_opt_layer(NAME USES target... [DEAR header] [INLINES]): the static library attn_opt_NAME of what lies in src/NAME, but for main.cpp.
# Sources are globbed so that adding a file (an operator family, a pattern) needs no edit here. Those that include the header,
# which takes long to read, share batches. INLINES: attn_opt_inline_in_batches().
function(attn_opt_layer name)
  cmake_parse_arguments(LAYER "INLINES" "DEAR" "USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main[.]cpp$")
  if(NOT sources)
    return()
  endif()
  if(LAYER_DEAR)
    attn_opt_readers_first(sources "${LAYER_DEAR}")
  endif()
  add_library(attn_opt_${name} STATIC ${sources})
  attn_opt_compile_settings(attn_opt_${name})
  if(LAYER_INLINES)
    attn_opt_inline_in_batches(attn_opt_${name})
  endif()
  target_link_libraries(attn_opt_${name} PUBLIC ${LAYER_USES})
endfunction()

# attn_opt_readers_first(VARIABLE header): VARIABLE's sources in another order, those first that include what begins with HEADER.
function(attn_opt_readers_first variable header)
  set(readers "")
  foreach(source IN LISTS ${variable})
    file(STRINGS ${source} found REGEX "^#include [<\"]${header}" LIMIT_COUNT 1)
    if(found)
      list(APPEND readers ${source})
    endif()
  endforeach()
  list(REMOVE_ITEM ${variable} ${readers})
  set(${variable} ${readers} ${${variable}} PARENT_SCOPE)
endfunction()

# attn_opt_patterns(USES target...): the objects of what lies in patterns. Patterns register themselves, so that all must be linked
# and not only what is called.
function(attn_opt_patterns)
  cmake_parse_arguments(PATTERNS "" "" "USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/patterns/*.cpp)
  add_library(attn_opt_patterns OBJECT ${sources})
  attn_opt_compile_settings(attn_opt_patterns)
  target_link_libraries(attn_opt_patterns PUBLIC ${PATTERNS_USES})
endfunction()

# attn_opt_embed(TARGET VARIABLE FILE): TARGET defines attn_opt::VARIABLE, a const char* const with the text of FILE.
function(attn_opt_embed target ATTN_OPT_VARIABLE file)
  file(READ ${file} ATTN_OPT_TEXT)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded_text.cpp.in ${CMAKE_BINARY_DIR}/${ATTN_OPT_VARIABLE}.cpp @ONLY)
  target_sources(${target} PRIVATE ${CMAKE_BINARY_DIR}/${ATTN_OPT_VARIABLE}.cpp)
endfunction()

# attn_opt_list_schemas(TARGET): TARGET includes onnx_schemas.inc, a line ATTN_OPT_SCHEMA(version, operator) for each of ONNX's schemas.
function(attn_opt_list_schemas target)
  get_target_property(folders ONNX::onnx INTERFACE_INCLUDE_DIRECTORIES)
  find_file(operator_sets onnx/defs/operator_sets.h HINTS ${folders} REQUIRED NO_CACHE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${operator_sets})
  file(STRINGS ${operator_sets} lines REGEX "GetOpSchema<.*\\(Onnx, [0-9]+, ")
  list(LENGTH lines count)
  list(TRANSFORM lines REPLACE "^.*\\(Onnx, ([0-9]+, [A-Za-z0-9]+)\\).*$" "ATTN_OPT_SCHEMA(\\1)")
  list(JOIN lines "\n" text)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/schemas/onnx_schemas.inc CONTENT "${text}\n" @ONLY)
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/schemas)
  target_compile_definitions(${target} PRIVATE ATTN_OPT_SCHEMAS=${count})
endfunction()

function(attn_opt_compile_settings target)
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wno-unused-parameter)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12 warns of its own std::string and std::vector: of copies that overlap or are longer than memory.
    target_compile_options(${target} PRIVATE -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
  endif()
  if(ATTN_OPT_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # Precompiling takes longer than the few batches of a unity build take to read the same. A compiler cache serves several
  # build folders at once, but not through precompiled headers.
  get_target_property(in_batches ${target} UNITY_BUILD)
  if(NOT in_batches AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    target_precompile_headers(${target} PRIVATE <onnx/onnx_pb.h> <string> <vector> <unordered_map>)
  endif()
endfunction()

# GCC inlines less in files that it takes for large, and a batch is large: as much as in its files alone, for a quarter more time.
function(attn_opt_inline_in_batches target)
  get_target_property(in_batches ${target} UNITY_BUILD)
  if(in_batches AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE --param=large-unit-insns=100000)
  endif()
endfunction()

# attn_opt_test(NAME USES target... [OF_NODE_TESTS filter] [ONE_BY_ONE]): the test program NAME_tests of what lies in tests/NAME. Tests
# that FILTER names read ONNX's node tests: attn_opt_node_tests registers them. Files that repeat names of each other are compiled
# one by one.
function(attn_opt_test name)
  cmake_parse_arguments(TEST "ONE_BY_ONE" "OF_NODE_TESTS" "USES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  if(TEST_ONE_BY_ONE)
    set(CMAKE_UNITY_BUILD OFF)
  endif()
  add_executable(${name}_tests ${sources})
  attn_opt_compile_settings(${name}_tests)
  target_compile_definitions(${name}_tests PRIVATE ATTN_OPT_TESTDATA="${PROJECT_SOURCE_DIR}/testdata")
  target_link_libraries(${name}_tests PRIVATE ${TEST_USES} GTest::gtest GTest::gmock GTest::gtest_main)
  if(TEST_OF_NODE_TESTS)
    set(others TEST_FILTER "-${TEST_OF_NODE_TESTS}")
  endif()
  gtest_discover_tests(${name}_tests DISCOVERY_TIMEOUT 60 ${others})
endfunction()

# attn_opt_node_tests(): the tests that read ONNX's backend node tests, and one before them that writes those, if scripts/test
# has installed the onnx package for it.
function(attn_opt_node_tests)
  set(python "${attn_opt_cache}/test-python/bin/python")
  if(NOT EXISTS "${python}")
    message(STATUS "ONNX's node tests are not run: scripts/test installs what writes them")
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/node_tests)
  add_test(NAME NodeTests.AreWritten
           COMMAND "${python}" ${PROJECT_SOURCE_DIR}/tests/exec/write_node_tests.py ${folder})
  set_tests_properties(NodeTests.AreWritten PROPERTIES FIXTURES_SETUP node_tests)
  foreach(program_and_filter "exec_tests NodeTests.*" "optimizer_tests ExpandedAttention.*")
    string(REPLACE " " ";" parts "${program_and_filter}")
    list(GET parts 0 program)
    list(GET parts 1 filter)
    gtest_discover_tests(${program} DISCOVERY_TIMEOUT 60 TEST_FILTER "${filter}" TEST_LIST ${program}_of_node_tests
                         PROPERTIES FIXTURES_REQUIRED node_tests ENVIRONMENT "ATTN_OPT_NODE_TESTS=${folder}")
  endforeach()
endfunction()
