#include "hooks/lock_flag.h"

enum { MAX_LOCK = 64 }; /* The largest size of a lock, in bytes. */

struct image {
  unsigned char bytes[MAX_LOCK];
};

/* Copies a lock, after a call of one of its methods.  Returns false with an
 * exception set on failure. */
static bool image_after(PyObject* lock, const char* method,
                        struct image* image) {
  PyObject* result = PyObject_CallMethod(lock, method, NULL);
  memcpy(image->bytes, lock, (size_t)Py_TYPE(lock)->tp_basicsize);
  Py_XDECREF(result);
  return result != NULL;
}

/* Returns the offset of the only byte that is 1 in a taken lock and 0 in a free
 * one. */
static size_t only_difference(const struct image* taken,
                              const struct image* free) {
  size_t found = 0;
  for (size_t i = sizeof(PyObject); i < MAX_LOCK; i++) {
    if (taken->bytes[i] == free->bytes[i])
      continue;
    if (found || taken->bytes[i] != 1 || free->bytes[i] != 0)
      return 0;
    found = i;
  }
  return found;
}

size_t st_lock_flag_find(PyObject* module) {
  struct image taken = {{0}}, free = {{0}};
  PyObject* lock = PyObject_CallMethod(module, "allocate_lock", NULL);
  bool is_known = lock && Py_TYPE(lock)->tp_basicsize <= MAX_LOCK &&
                  image_after(lock, "acquire", &taken) &&
                  image_after(lock, "release", &free);
  Py_XDECREF(lock);
  PyErr_Clear();
  return is_known ? only_difference(&taken, &free) : 0;
}
