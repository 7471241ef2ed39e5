# The extension _importer for another system: reads traces, records nothing. It uses only the stable
# ABI, so the headers of any CPython suit it, also those of one for Linux: the oldest of the folder
# STRETTO_HEADERS are taken.
set(STRETTO_HEADERS "" CACHE PATH "Folder of the headers of several CPythons")
file(GLOB versions RELATIVE ${STRETTO_HEADERS} ${STRETTO_HEADERS}/*)
list(SORT versions COMPARE NATURAL)
list(GET versions 0 oldest)

# Not MODULE: zig can't link such libraries for macOS.
add_library(_importer SHARED
  native/importer/module.c
  native/bind/analysis/importer.c
  native/bind/data_path/trace_scan.c
  native/bind/common/arguments.c
  native/bind/common/errors.c
  native/bind/common/types.c)
target_include_directories(_importer PRIVATE native)
target_include_directories(_importer SYSTEM PRIVATE ${STRETTO_HEADERS}/${oldest})
target_compile_definitions(_importer PRIVATE Py_LIMITED_API=0x030B0000)
target_compile_options(_importer PRIVATE -include ${CMAKE_SOURCE_DIR}/native/importer/pyconfig.h)
target_link_libraries(_importer PRIVATE st_analysis)
target_link_options(_importer PRIVATE -s)
set_target_properties(_importer PROPERTIES PREFIX "" SUFFIX .abi3.so)

if(WIN32)
  # What Windows loads the stable ABI from.
  add_custom_command(OUTPUT python3.lib
    COMMAND ${STRETTO_ZIG} dlltool -m i386:x86-64 -l python3.lib
      -d ${CMAKE_SOURCE_DIR}/native/importer/python3.def
    DEPENDS native/importer/python3.def)
  add_custom_target(python3_library DEPENDS python3.lib)
  add_dependencies(_importer python3_library)
  target_link_libraries(_importer PRIVATE ${CMAKE_BINARY_DIR}/python3.lib)
  set_target_properties(_importer PROPERTIES SUFFIX .pyd)
else()
  target_link_options(_importer PRIVATE -undefined dynamic_lookup)
endif()
