# Unit tests, benchmarks and fuzzers: one program per file.

function(stretto_program path)
  cmake_path(GET path STEM name)
  add_executable(${name} ${path} ${ARGN})
  target_include_directories(${name} PRIVATE native native/test)
  target_link_libraries(${name} PRIVATE st_analysis st_probes st_core m)
endfunction()

if(STRETTO_TESTS)
  enable_testing()
  # Its own calls are followed by their frame pointers.
  set_source_files_properties(native/test/test_heap_file.c PROPERTIES
    COMPILE_OPTIONS -fno-omit-frame-pointer)
  file(GLOB tests CONFIGURE_DEPENDS native/test/test_*.c)
  foreach(test IN LISTS tests)
    stretto_program(${test})
    cmake_path(GET test STEM name)
    add_test(NAME ${name} COMMAND ${name})
    # Under emulation sanitized programs take more than a hundred times as long.
    set_tests_properties(${name} PROPERTIES
      TIMEOUT $<IF:$<BOOL:${CMAKE_CROSSCOMPILING}>,20000,300>)
  endforeach()

  file(GLOB benches CONFIGURE_DEPENDS native/test/bench_*.c)
  foreach(bench IN LISTS benches)
    stretto_program(${bench})
  endforeach()
endif()

if(STRETTO_FUZZ)
  file(GLOB fuzzers CONFIGURE_DEPENDS native/test/fuzz/fuzz_*.c)
  foreach(fuzzer IN LISTS fuzzers)
    cmake_path(GET fuzzer STEM name)
    if(STRETTO_LIBFUZZER)
      stretto_program(${fuzzer})
      target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    else()
      stretto_program(${fuzzer} native/test/fuzz/driver.c)
    endif()
  endforeach()
  if(STRETTO_LIBFUZZER)
    target_compile_options(st_core PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endif()
