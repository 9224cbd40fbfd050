# cpack -G DEB: the command as a Debian package, with its manual page, completions and report schemas. scripts/deb makes it.
include(GNUInstallDirs)

# What stands elsewhere in Debian (component "debian", which cmake --install leaves out).
set(attn_opt_debian_docs ${CMAKE_INSTALL_DATADIR}/doc/attn-opt)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${attn_opt_debian_docs} RENAME copyright COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${attn_opt_debian_docs}
        COMPONENT debian EXCLUDE_FROM_ALL)
# README's links lead there.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${attn_opt_debian_docs} COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_BINARY_DIR}/printed/_attn-opt DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions
        COMPONENT debian EXCLUDE_FROM_ALL)

# Packing builds what it packs, not the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_COMPONENTS_ALL command debian)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGE_NAME attn-opt)
set(CPACK_PACKAGE_VENDOR "attn-opt")
set(CPACK_PACKAGE_CONTACT "The attn-opt authors")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "attn-opt finds attention in ONNX models in whatever form an exporter left it
and rewrites it into the operator Attention. An embedded CPU executor proves
that the numbers did not change.")
# The shared libraries that the command was linked to, as the release of the machine that builds calls them.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
