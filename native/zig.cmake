# Toolchain file: zig's C compiler, for any architecture: Linux with any glibc from 2.17 on, Windows,
# macOS.
#
#   cmake --toolchain native/zig.cmake -D STRETTO_ZIG=/path/to/zig -D STRETTO_TARGET=aarch64-linux-gnu.2.28
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STRETTO_ZIG STRETTO_TARGET)
string(REGEX MATCH "^[^-]+" CMAKE_SYSTEM_PROCESSOR "${STRETTO_TARGET}")
if(STRETTO_TARGET MATCHES "-windows")
  set(CMAKE_SYSTEM_NAME Windows)
elseif(STRETTO_TARGET MATCHES "-macos")
  set(CMAKE_SYSTEM_NAME Darwin)
else()
  set(CMAKE_SYSTEM_NAME Linux)
endif()
set(CMAKE_C_COMPILER ${STRETTO_ZIG} cc)
set(CMAKE_C_COMPILER_TARGET ${STRETTO_TARGET})
# The archiver is `zig ar`: two words, where CMAKE_AR takes one.
set(CMAKE_C_ARCHIVE_CREATE "${STRETTO_ZIG} ar qc <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_APPEND "${STRETTO_ZIG} ar q <TARGET> <OBJECTS>")
set(CMAKE_C_ARCHIVE_FINISH "${STRETTO_ZIG} ranlib <TARGET>")
# CMake's checks compile, and link nothing: zig would compile the C library of the target for them,
# without optimisation, and once more for the extensions. For Windows that takes minutes.
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
