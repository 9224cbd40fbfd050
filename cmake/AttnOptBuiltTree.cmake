# The libraries of attn-opt as build/ has them, for pip behind ./scripts/demo, which has compiled all but the Python module.
#
# attn_opt_take_built_tree(TREE): attn_opt_cli and what it needs as imported targets, and attn-opt as a target that brings TREE up
# to date. TREE's own CMake is asked, so that it stays as it was configured.
set(ATTN_OPT_TREE_EXPORT attn_opt_build_tree.cmake)

# attn_opt_built_tree(VARIABLE): VARIABLE is build/ if that is of this compiler, optimised, and was built once; else empty.
function(attn_opt_built_tree variable)
  set(tree ${PROJECT_SOURCE_DIR}/build)
  set(${variable} "" PARENT_SCOPE)
  if(EXISTS ${tree}/${ATTN_OPT_TREE_EXPORT} AND EXISTS ${tree}/attn-opt)
    load_cache(${tree} READ_WITH_PREFIX attn_opt_tree_ CMAKE_BUILD_TYPE CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS)
    file(REAL_PATH "${attn_opt_tree_CMAKE_CXX_COMPILER}" compiler_of_tree)  # c++ and g++ are one
    file(REAL_PATH "${CMAKE_CXX_COMPILER}" compiler)
    set(settings "${CMAKE_BUILD_TYPE};${compiler};${CMAKE_CXX_FLAGS}")
    if(settings STREQUAL "${attn_opt_tree_CMAKE_BUILD_TYPE};${compiler_of_tree};${attn_opt_tree_CMAKE_CXX_FLAGS}")
      set(${variable} ${tree} PARENT_SCOPE)
      return()
    endif()
  endif()
  message(STATUS "All of attn-opt is compiled, which takes 4 minutes on 2 cores: ${tree} has nothing of these settings")
endfunction()

macro(attn_opt_take_built_tree tree)
  load_cache(${tree} READ_WITH_PREFIX attn_opt_tree_ CMAKE_COMMAND)
  add_custom_target(attn-opt COMMAND ${attn_opt_tree_CMAKE_COMMAND} --build ${tree} --target attn-opt)
  include(${tree}/${ATTN_OPT_TREE_EXPORT})
  message(STATUS "The libraries are those of ${tree}")
endmacro()
