# The library that `stretto record --native-heap` preloads into programs: C11 and the C library,
# which its maths is a part of. It knows nothing of Python, so one file serves all CPythons.
add_library(stretto_malloc MODULE native/preload/malloc.c native/preload/sampler.c)
set_target_properties(stretto_malloc PROPERTIES PREFIX "lib" OUTPUT_NAME stretto_malloc)
target_include_directories(stretto_malloc PRIVATE native)
target_compile_options(stretto_malloc PRIVATE
  -fomit-frame-pointer -foptimize-sibling-calls -fno-builtin -ftls-model=initial-exec)
target_link_libraries(stretto_malloc PRIVATE st_probes st_core m ${CMAKE_DL_LIBS})
install(TARGETS stretto_malloc DESTINATION stretto)
