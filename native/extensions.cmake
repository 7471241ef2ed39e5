# The two Python extensions, for the interpreter that runs the build; or for each CPython whose
# headers are in a folder of STRETTO_HEADERS, named by its version (tools/wheels). The extensions
# of 3.12 are then in the folder 3.12.
set(STRETTO_HEADERS "" CACHE PATH "Folder of the headers of several CPythons")
if(STRETTO_HEADERS)
  file(GLOB versions RELATIVE ${STRETTO_HEADERS} ${STRETTO_HEADERS}/*)
else()
  find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)
  set(versions ${Python_VERSION})
endif()

# Adds a library for one CPython.
function(stretto_library target name version)
  if(STRETTO_HEADERS)
    string(REPLACE "." "" tag ${version})
    add_library(${target} MODULE ${ARGN})
    target_include_directories(${target} SYSTEM PRIVATE ${STRETTO_HEADERS}/${version})
    set_target_properties(${target} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${version}
      OUTPUT_NAME ${name}.cpython-${tag}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
  else()
    python_add_library(${target} MODULE WITH_SOABI ${ARGN})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  endif()
endfunction()

# Adds an extension, for each CPython.
function(stretto_extension name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS native/${folder}/*.c)
  foreach(version IN LISTS versions)
    set(target ${name}-${version})
    stretto_library(${target} ${name} ${version} ${sources})
    target_include_directories(${target} PRIVATE native)
    target_link_libraries(${target} PRIVATE ${ARGN} st_core)
    if(STRETTO_TLS_MODEL)
      target_compile_options(${target} PRIVATE -ftls-model=${STRETTO_TLS_MODEL})
    endif()
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
      # A call of libpython needs no jump in a page of its own, which is in no cache after a wait.
      target_compile_options(${target} PRIVATE -fno-plt)
    endif()
    target_precompile_headers(${target} PRIVATE native/bind/common/python.h)
    install(TARGETS ${target} DESTINATION stretto)
  endforeach()
endfunction()

# Half of the compiler's time would be Python.h, so it is parsed once for each extension and CPython.
# These sources define Py_BUILD_CORE, and parse it themselves.
set_source_files_properties(
  native/bind/common/exempt.c native/hooks/profile.c native/hooks/python_layout.c
  PROPERTIES SKIP_PRECOMPILE_HEADERS ON)

stretto_extension(_native bind st_analysis st_probes)
stretto_extension(_pyhooks hooks st_probes)

# Files with the code of modules that are imported together (stretto/base/bundle.py). tools/wheels
# makes those of other CPythons.
if(NOT STRETTO_HEADERS)
  file(GLOB_RECURSE modules CONFIGURE_DEPENDS src/stretto/*.py)
  add_custom_command(OUTPUT bundles.made
    COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/bundles.py
      ${CMAKE_SOURCE_DIR}/src/stretto ${CMAKE_BINARY_DIR}/bundles
    COMMAND ${CMAKE_COMMAND} -E touch bundles.made
    DEPENDS ${modules} ${CMAKE_SOURCE_DIR}/tools/bundles.py)
  add_custom_target(bundles ALL DEPENDS bundles.made)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/bundles DESTINATION stretto)
endif()
