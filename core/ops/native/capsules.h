// What a kernel module hands to jax.ffi: its handlers by name, as capsules.
#pragma once

#include <Python.h>

#include <initializer_list>
#include <utility>

inline PyObject* capsules(std::initializer_list<std::pair<const char*, void*>> handlers) {
  PyObject* table = PyDict_New();
  if (!table) return nullptr;
  for (const auto& [name, handler] : handlers) {
    PyObject* capsule = PyCapsule_New(handler, "xla._CUSTOM_CALL_TARGET", nullptr);
    const bool failed = !capsule || PyDict_SetItemString(table, name, capsule);
    Py_XDECREF(capsule);
    if (failed) {
      Py_DECREF(table);
      return nullptr;
    }
  }
  return table;
}
