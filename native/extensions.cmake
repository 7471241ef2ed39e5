# The two Python extensions. A folder without sources has no extension.
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Module)

if(STRETTO_TLS_MODEL)
  target_compile_options(st_core PRIVATE -ftls-model=${STRETTO_TLS_MODEL})
endif()

function(stretto_extension name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS native/${folder}/*.c)
  if(NOT sources)
    return()
  endif()
  python_add_library(${name} MODULE WITH_SOABI ${sources})
  target_include_directories(${name} PRIVATE native)
  target_link_libraries(${name} PRIVATE st_core)
  if(STRETTO_TLS_MODEL)
    target_compile_options(${name} PRIVATE -ftls-model=${STRETTO_TLS_MODEL})
  endif()
  install(TARGETS ${name} DESTINATION stretto)
endfunction()

stretto_extension(_native bind)
stretto_extension(_pyhooks hooks)
target_link_libraries(_pyhooks PRIVATE st_probes)
