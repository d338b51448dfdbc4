// State-vector programs on the CPU behind XLA's FFI: values, adjoint derivatives, Pauli sums; complex64 and complex128.
//
// The kernels of gates_kernel.h are compiled for AVX-512, AVX2 and the baseline; the choice is made when the module loads, so
// one binary is right on every x86-64 (and, with the baseline alone, on other machines).

#include <Python.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "capsules.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

template <class T>
struct Aligned {
  typedef T value_type;
  Aligned() = default;
  template <class U>
  Aligned(const Aligned<U>&) {}
  T* allocate(size_t n) { return (T*)aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64 + 64); }
  void deallocate(T* p, size_t) { free(p); }
  template <class U>
  bool operator==(const Aligned<U>&) const { return true; }
  template <class U>
  bool operator!=(const Aligned<U>&) const { return false; }
};

#define NS base32
#define REAL float
#define INT int32_t
#define VBYTES 16
#include "gates_kernel.h"
#define NS base64
#define REAL double
#define INT int64_t
#define VBYTES 16
#include "gates_kernel.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma,popcnt,bmi,bmi2")
#define NS avx2_32
#define REAL float
#define INT int32_t
#define VBYTES 32
#include "gates_kernel.h"
#define NS avx2_64
#define REAL double
#define INT int64_t
#define VBYTES 32
#include "gates_kernel.h"
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,popcnt,bmi,bmi2,prefer-vector-width=512")
#define NS avx512_32
#define REAL float
#define INT int32_t
#define VBYTES 64
#include "gates_kernel.h"
#define NS avx512_64
#define REAL double
#define INT int64_t
#define VBYTES 64
#include "gates_kernel.h"
#pragma GCC pop_options
#endif

struct Table {
  const char* name;
  decltype(&base32::run) run[2];
  decltype(&base32::adjoint) adjoint[2];
  decltype(&base32::pauli) pauli[2];
};

const Table tables[] = {
    {"baseline", {base32::run, base64::run}, {base32::adjoint, base64::adjoint}, {base32::pauli, base64::pauli}},
#if defined(__x86_64__)
    {"avx2", {avx2_32::run, avx2_64::run}, {avx2_32::adjoint, avx2_64::adjoint}, {avx2_32::pauli, avx2_64::pauli}},
    {"avx512",
     {avx512_32::run, avx512_64::run},
     {avx512_32::adjoint, avx512_64::adjoint},
     {avx512_32::pauli, avx512_64::pauli}},
#endif
};

int best() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw"))
    return 2;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) return 1;
#endif
  return 0;
}

int chosen = best();

int precision(ffi::AnyBuffer b) { return b.element_type() == ffi::DataType::C128 || b.element_type() == ffi::DataType::F64; }

ffi::Error Run(ffi::AnyBuffer psi, ffi::AnyBuffer coef, int64_t n, ffi::Span<const int64_t> rows,
               ffi::Span<const int64_t> schedule, ffi::Result<ffi::AnyBuffer> out) {
  const int64_t size = int64_t(1) << n;
  tables[chosen].run[precision(coef)](psi.untyped_data(), out->untyped_data(), coef.untyped_data(),
                                      (int64_t)out->element_count() / size, (int)n, (int64_t)rows.size() / 5, rows.begin(),
                                      schedule.begin());
  return ffi::Error::Success();
}

ffi::Error Prepare(ffi::AnyBuffer coef, int64_t n, ffi::Span<const int64_t> rows, ffi::Span<const int64_t> schedule,
                   ffi::Result<ffi::AnyBuffer> out) {
  const int64_t size = int64_t(1) << n;
  tables[chosen].run[precision(coef)](nullptr, out->untyped_data(), coef.untyped_data(), (int64_t)out->element_count() / size,
                                      (int)n, (int64_t)rows.size() / 5, rows.begin(), schedule.begin());
  return ffi::Error::Success();
}

ffi::Error Adjoint(ffi::AnyBuffer psi, ffi::AnyBuffer coef, ffi::AnyBuffer ct, int64_t n, ffi::Span<const int64_t> rows,
                   ffi::Span<const int64_t> schedule, ffi::Result<ffi::AnyBuffer> ct_psi, ffi::Result<ffi::AnyBuffer> ct_coef,
                   ffi::Result<ffi::AnyBuffer> work) {
  const int64_t size = int64_t(1) << n;
  tables[chosen].adjoint[precision(coef)](psi.untyped_data(), work->untyped_data(), ct.untyped_data(), ct_psi->untyped_data(),
                                          coef.untyped_data(), ct_coef->untyped_data(), (int64_t)psi.element_count() / size,
                                          (int)n, (int64_t)rows.size() / 5, rows.begin(), schedule.begin());
  return ffi::Error::Success();
}

ffi::Error Pauli(ffi::AnyBuffer psi, ffi::AnyBuffer coef, int64_t n, ffi::Span<const int64_t> terms,
                 ffi::Result<ffi::AnyBuffer> out) {
  const int64_t size = int64_t(1) << n;
  tables[chosen].pauli[precision(coef)](psi.untyped_data(), out->untyped_data(), coef.untyped_data(),
                                        (int64_t)psi.element_count() / size, (int)n, (int64_t)terms.size() / 3, terms.begin());
  return ffi::Error::Success();
}

}  // namespace

#define MASKS(name) .Attr<int64_t>("n").Attr<ffi::Span<const int64_t>>(name)
XLA_FFI_DEFINE_HANDLER_SYMBOL(SciaxGatesRun, Run,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>() MASKS("rows")
                                  .Attr<ffi::Span<const int64_t>>("schedule")
                                  .Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(SciaxGatesPrepare, Prepare,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>() MASKS("rows")
                                  .Attr<ffi::Span<const int64_t>>("schedule")
                                  .Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(SciaxGatesAdjoint, Adjoint,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>() MASKS("rows")
                                  .Attr<ffi::Span<const int64_t>>("schedule")
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>()
                                  .Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(SciaxGatesPauli, Pauli,
                              ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Arg<ffi::AnyBuffer>() MASKS("terms").Ret<ffi::AnyBuffer>());

// -- the Python module -----------------------------------------------------------------------------------------------------------

static PyObject* targets(PyObject*, PyObject*) {
  return capsules({{"sciax_gates_run", reinterpret_cast<void*>(SciaxGatesRun)},
                   {"sciax_gates_prepare", reinterpret_cast<void*>(SciaxGatesPrepare)},
                   {"sciax_gates_adjoint", reinterpret_cast<void*>(SciaxGatesAdjoint)},
                   {"sciax_gates_pauli", reinterpret_cast<void*>(SciaxGatesPauli)}});
}

static PyObject* instruction_set(PyObject*, PyObject*) { return PyUnicode_FromString(tables[chosen].name); }

// For tests and benchmarks: run with a lesser instruction set than the machine has.
static PyObject* choose(PyObject*, PyObject* arg) {
  const char* name = PyUnicode_AsUTF8(arg);
  if (!name) return nullptr;
  for (int k = 0; k <= best(); k++)
    if (!strcmp(name, tables[k].name)) {
      chosen = k;
      Py_RETURN_NONE;
    }
  PyErr_SetString(PyExc_ValueError, "not an instruction set of this machine");
  return nullptr;
}

static PyMethodDef methods[] = {
    {"targets", targets, METH_NOARGS, "FFI handlers by name, as capsules."},
    {"instruction_set", instruction_set, METH_NOARGS, "The instruction set in use."},
    {"choose", choose, METH_O, "Use another instruction set: baseline, avx2 or avx512."},
    {nullptr, nullptr, 0, nullptr},
};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_gates", "State-vector kernels.", -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__gates() { return PyModule_Create(&module); }
