// Neighbour pairs of a set of atoms by sorted cells: any cell, any periodicity, several images of a neighbour.
// XLA FFI calls for float32 and float64; called by sciax.core.ops.neighbours.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstdint>

#include "capsules.h"
#include "cells.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

template <typename T>
ffi::Error pairs(const T* pos, int64_t n, const T* cell, const int32_t* pbc, double cutoff, int64_t capacity,
                 int32_t* center, int32_t* other, int32_t* shift, int32_t* count_out) {
  int64_t found = 0;
  sciax::Cells cells;
  if (!cells.fill(pos, n, cell, pbc, cutoff)) {
    found = -1;  // the caller turns this into an error
  } else {
    double cut2 = cutoff * cutoff;
    const int32_t* wrap = cells.wrap.data();
    for (int64_t i = 0; i < n; ++i)
      cells.runs(i, [&](int32_t first, int32_t last, double ox, double oy, double oz, const int64_t s[3]) {
        bool home = s[0] == 0 && s[1] == 0 && s[2] == 0;
        for (int32_t k = first; k < last; ++k) {
          double dx = cells.x[k] + ox, dy = cells.y[k] + oy, dz = cells.z[k] + oz;
          if (dx * dx + dy * dy + dz * dz < cut2) {
            int32_t j = cells.order[k];
            if (home && j == i) continue;
            if (found < capacity) {
              center[found] = static_cast<int32_t>(i);
              other[found] = j;
              for (int c = 0; c < 3; ++c)
                shift[3 * found + c] = static_cast<int32_t>(s[c]) + wrap[3 * i + c] - wrap[3 * j + c];
            }
            ++found;
          }
        }
      });
  }
  for (int64_t e = std::max<int64_t>(0, std::min(found, capacity)); e < capacity; ++e) {
    center[e] = static_cast<int32_t>(n);  // out of range: dropped by segment sums
    other[e] = 0;
    shift[3 * e] = shift[3 * e + 1] = shift[3 * e + 2] = 0;
  }
  count_out[0] = static_cast<int32_t>(std::min<int64_t>(found, INT32_MAX));
  return ffi::Error::Success();
}

template <ffi::DataType D>
ffi::Error call(ffi::Buffer<D> pos, ffi::Buffer<D> cell, ffi::Buffer<ffi::S32> pbc, double cutoff,
                   ffi::ResultBuffer<ffi::S32> center, ffi::ResultBuffer<ffi::S32> other,
                   ffi::ResultBuffer<ffi::S32> shift, ffi::ResultBuffer<ffi::S32> count) {
  return pairs(pos.typed_data(), pos.dimensions()[0], cell.typed_data(), pbc.typed_data(), cutoff,
               center->dimensions()[0], center->typed_data(), other->typed_data(), shift->typed_data(),
               count->typed_data());
}

}  // namespace

#define SCIAX_PAIRS(NAME, D)                                          \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(NAME, call<D>,                     \
                                ffi::Ffi::Bind()                      \
                                    .Arg<ffi::Buffer<D>>()            \
                                    .Arg<ffi::Buffer<D>>()            \
                                    .Arg<ffi::Buffer<ffi::S32>>()     \
                                    .Attr<double>("cutoff")           \
                                    .Ret<ffi::Buffer<ffi::S32>>()     \
                                    .Ret<ffi::Buffer<ffi::S32>>()     \
                                    .Ret<ffi::Buffer<ffi::S32>>()     \
                                    .Ret<ffi::Buffer<ffi::S32>>())

SCIAX_PAIRS(sciax_neighbours_f32, ffi::F32);
SCIAX_PAIRS(sciax_neighbours_f64, ffi::F64);

static PyObject* targets(PyObject*, PyObject*) {
  return capsules({{"sciax_neighbours_f32", reinterpret_cast<void*>(sciax_neighbours_f32)},
                   {"sciax_neighbours_f64", reinterpret_cast<void*>(sciax_neighbours_f64)}});
}

static PyMethodDef methods[] = {{"targets", targets, METH_NOARGS, "FFI targets by name."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_neighbours", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__neighbours(void) { return PyModule_Create(&module); }
