/* Takes the place of CPython's pyconfig.h, which describes the system that
 * CPython was compiled for: the headers of a CPython for Linux then suit Windows
 * and macOS, as far as the limited API goes.  The compiler includes this file
 * before any other, and the guard leaves out the original one.
 */
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H

#define SIZEOF_INT 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define ALIGNOF_MAX_ALIGN_T 16
#define WITH_THREAD 1

#ifdef _WIN32
#define MS_WINDOWS
#define SIZEOF_LONG 4
#define SIZEOF_WCHAR_T 2
#define HAVE_DECLSPEC_DLL 1
#else
#define SIZEOF_LONG 8
#define SIZEOF_WCHAR_T 4
#define HAVE_UNISTD_H 1
#endif

#endif
