# What goes with the command: completions and manual page, which it prints itself, and the schemas of its reports.
include(GNUInstallDirs)

# attn_opt_printed(FILE FOLDER words...): FILE, what attn-opt prints when called with the words, is installed into FOLDER.
function(attn_opt_printed file folder)
  set(made ${CMAKE_BINARY_DIR}/printed/${file})
  add_custom_command(OUTPUT ${made}
                     COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/printed
                     COMMAND attn-opt ${ARGN} > ${made}
                     DEPENDS attn-opt VERBATIM)
  set_property(GLOBAL APPEND PROPERTY attn_opt_printed_files ${made})
  install(FILES ${made} DESTINATION ${folder} COMPONENT command)
endfunction()

attn_opt_printed(attn-opt ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
attn_opt_printed(_attn-opt ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
attn_opt_printed(attn-opt.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
attn_opt_printed(attn-opt.1 ${CMAKE_INSTALL_MANDIR}/man1 man)
get_property(attn_opt_printed_files GLOBAL PROPERTY attn_opt_printed_files)
add_custom_target(attn_opt_printed_files ALL DEPENDS ${attn_opt_printed_files})
# What cmake --install takes. scripts/demo builds no more.
add_custom_target(attn_opt_installable DEPENDS attn-opt attn_opt_pattern_archive attn_opt_printed_files)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/schema DESTINATION ${CMAKE_INSTALL_DATADIR}/attn-opt COMPONENT command)
