# cmake --install: the command (component "command"), and the library with its package (component "library"):
# find_package(attn_opt), attn_opt::attn_opt. docs/cpp.md is the manual.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Patterns register themselves: who links this archive must take all of it.
add_library(attn_opt_pattern_archive STATIC $<TARGET_OBJECTS:attn_opt_patterns>)
target_link_libraries(attn_opt_pattern_archive PUBLIC attn_opt_rewrite)

set(attn_opt_installed attn_opt_pattern_archive)
foreach(layer IN LISTS ATTN_OPT_LIBRARY_LAYERS)
  list(APPEND attn_opt_installed attn_opt_${layer})
endforeach()
foreach(target IN LISTS attn_opt_installed)
  string(REPLACE "attn_opt_" "" name ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} INTERFACE cxx_std_20)
endforeach()
# The same, and the command's, as they lie in the build folder: AttnOptBuiltTree takes them.
set_target_properties(attn_opt_cli PROPERTIES EXPORT_NAME cli)
set_target_properties(attn_opt_patterns PROPERTIES EXPORT_NAME patterns)
export(TARGETS ${attn_opt_installed} attn_opt_cli attn_opt_patterns NAMESPACE attn_opt_ FILE ${CMAKE_BINARY_DIR}/${ATTN_OPT_TREE_EXPORT})

set(attn_opt_package ${CMAKE_INSTALL_LIBDIR}/cmake/attn_opt)
install(TARGETS attn-opt RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(TARGETS ${attn_opt_installed} EXPORT attn_opt ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/attn_opt COMPONENT library)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/attn_opt DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
install(EXPORT attn_opt NAMESPACE attn_opt:: FILE attn_optTargets.cmake DESTINATION ${attn_opt_package} COMPONENT library)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/attn_optConfig.cmake.in ${CMAKE_BINARY_DIR}/attn_optConfig.cmake
                              INSTALL_DESTINATION ${attn_opt_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/attn_optConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/attn_optConfig.cmake ${CMAKE_BINARY_DIR}/attn_optConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/AttnOptLibraries.cmake
        DESTINATION ${attn_opt_package} COMPONENT library)
