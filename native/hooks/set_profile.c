#include "hooks/set_profile.h"

/* A strong reference to the original sys.setprofile(); NULL if it is not
 * replaced. */
static PyCFunctionObject* setprofile;
static PyMethodDef* original;
static PyMethodDef replaced;
/* The C function that the original sys.setprofile() installs. */
static Py_tracefunc program_hook;

static bool (*reported_by_us)(PyThreadState* thread);
static PyObject* own_function;

/* A profile function that is installed instead of the program's hook until the
 * first event.  So the program's hook does not get the return of
 * sys.setprofile(). */
static int skip_return(PyObject* self, PyFrameObject* frame, int what,
                       PyObject* arg) {
  PyThreadState_Get()->c_profilefunc = program_hook;
  if (what == PyTrace_C_RETURN && arg == (PyObject*)setprofile)
    return 0;
  return program_hook(self, frame, what, arg);
}

static PyObject* set_profile(PyObject* module, PyObject* function) {
  PyThreadState* thread = PyThreadState_Get();
  bool reported = reported_by_us(thread);
  PyObject* result = original->ml_meth(module, function);
  if (result && reported && thread->c_profilefunc &&
      thread->c_profilefunc != skip_return &&
      (!own_function || thread->c_profileobj != own_function)) {
    program_hook = thread->c_profilefunc;
    thread->c_profilefunc = skip_return;
  }
  return result;
}

void st_set_profile_follow(bool (*is_reported)(PyThreadState* thread),
                           PyObject* ours) {
  PyObject* function = PySys_GetObject("setprofile");
  if (setprofile || !function || !PyCFunction_CheckExact(function) ||
      PyCFunction_GET_FLAGS(function) != METH_O)
    return;
  reported_by_us = is_reported;
  own_function = ours;
  setprofile = (PyCFunctionObject*)Py_NewRef(function);
  original = setprofile->m_ml;
  replaced = *original;
  replaced.ml_meth = set_profile;
  setprofile->m_ml = &replaced;
}

void st_set_profile_unfollow(void) {
  if (setprofile)
    setprofile->m_ml = original;
  Py_CLEAR(setprofile);
}
