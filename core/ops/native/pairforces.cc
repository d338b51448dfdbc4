// Half neighbour lists in slot order and the Lennard-Jones sum over them. XLA FFI calls for float32 and float64; called by
// sciax.core.ops.neighbours. Every pair is held once, in four bytes: the slot of the other atom and, in the upper bits, which of
// the 27 nearest images it is. Atoms are taken in the order of the search cells, so neighbours lie close in memory.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "capsules.h"
#include "cells.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kShift = 27;
constexpr uint32_t kMask = (1u << kShift) - 1;

template <ffi::DataType D>
ffi::Error half(ffi::Buffer<D> pos, ffi::Buffer<D> cell, ffi::Buffer<ffi::S32> pbc, double cutoff,
                ffi::ResultBuffer<ffi::S32> order, ffi::ResultBuffer<ffi::S32> wrap, ffi::ResultBuffer<ffi::S32> start,
                ffi::ResultBuffer<ffi::U32> others, ffi::ResultBuffer<ffi::S32> count_out) {
  int64_t n = pos.dimensions()[0], capacity = others->dimensions()[0], found = 0;
  int32_t *row = start->typed_data(), *w = wrap->typed_data();
  uint32_t* out = others->typed_data();
  sciax::Cells cells;
  bool sound = cells.fill(pos.typed_data(), n, cell.typed_data(), pbc.typed_data(), cutoff), near = true;
  if (sound) {
    double cut2 = cutoff * cutoff;
    std::vector<uint32_t> hits(n + 1);
    for (int64_t a = 0; a < n; ++a) {
      int64_t i = cells.order[a];
      order->typed_data()[a] = static_cast<int32_t>(i);
      for (int c = 0; c < 3; ++c) w[3 * a + c] = cells.wrap[3 * i + c];
      row[a] = static_cast<int32_t>(std::min(found, capacity));
      cells.runs(i, [&](int32_t first, int32_t last, double ox, double oy, double oz, const int64_t s[3]) {
        near = near && std::abs(s[0]) <= 1 && std::abs(s[1]) <= 1 && std::abs(s[2]) <= 1;
        int64_t code = 9 * s[0] + 3 * s[1] + s[2] + 13;
        // each pair once: slots above this one; of the atom's own images those on the positive side
        int32_t low = static_cast<int32_t>(code > 13 ? a : a + 1);
        uint32_t tag = static_cast<uint32_t>(code & 31) << kShift;
        int64_t got = 0;
        for (int32_t k = std::max(first, low); k < last; ++k) {
          double dx = cells.x[k] + ox, dy = cells.y[k] + oy, dz = cells.z[k] + oz;
          hits[got] = tag | static_cast<uint32_t>(k);
          got += dx * dx + dy * dy + dz * dz < cut2;  // no branch: a third of the candidates hit
        }
        if (found + got <= capacity) std::copy(hits.begin(), hits.begin() + got, out + found);
        found += got;
      });
    }
  } else {
    std::fill(order->typed_data(), order->typed_data() + n, 0);
    std::fill(w, w + 3 * n, 0);
    std::fill(row, row + n, 0);
  }
  row[n] = static_cast<int32_t>(std::max<int64_t>(0, std::min(found, capacity)));
  for (int64_t e = row[n]; e < capacity; ++e) out[e] = 0;
  if (found > capacity) std::fill(row, row + n + 1, 0);  // incomplete: nothing of it may be used
  // -1: a degenerate cell or a position that is not finite; -2: a cell thinner than the cutoff
  count_out->typed_data()[0] = !sound ? -1 : !near ? -2 : static_cast<int32_t>(std::min<int64_t>(found, INT32_MAX));
  return ffi::Error::Success();
}

enum End { kTruncate, kShifted, kForceShift, kSmooth };

template <typename T>
struct Vector {
  typedef T type __attribute__((vector_size(4 * sizeof(T))));
};

template <typename T, End kEnd>
void sum(const T* pos, const T* cell, const int32_t* order, const int32_t* wrap, const int32_t* start,
         const uint32_t* others, int64_t n, double epsilon, double sigma, double cutoff, double onset, T* energies, T* forces,
         T* virial) {
  using V = typename Vector<T>::type;
  std::vector<V> x(n), f(n, V{});
  std::vector<T> u_of(n, T(0));
  V image[32];
  for (int k = 0; k < 32; ++k) image[k] = V{};
  for (int k = 0; k < 27; ++k)
    for (int c = 0; c < 3; ++c)
      image[k][c] = T(k / 9 - 1) * cell[c] + T(k / 3 % 3 - 1) * cell[3 + c] + T(k % 3 - 1) * cell[6 + c];
  for (int64_t a = 0; a < n; ++a) {
    x[a] = V{};
    for (int c = 0; c < 3; ++c) {
      // in double: the lattice vectors to take off may be many
      double p = pos[3 * order[a] + c];
      for (int r = 0; r < 3; ++r) p -= static_cast<double>(wrap[3 * a + r]) * cell[3 * r + c];
      x[a][c] = static_cast<T>(p);
    }
  }
  const T rc2 = T(cutoff * cutoff), s2 = T(sigma * sigma), e4 = T(4 * epsilon);
  const double c6 = std::pow(sigma / cutoff, 6);
  const T u_c = T(4 * epsilon * c6 * (c6 - 1)), f_c = T(-48 * epsilon * c6 * (c6 - 0.5) / cutoff), rc = T(cutoff);
  const T on2 = T(onset * onset), span = T(1 / (cutoff * cutoff - onset * onset));
  double w[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
  for (int64_t a = 0; a < n; ++a) {
    const V xa = x[a];
    V fa = V{}, wx = V{}, wy = V{}, wz = V{};
    T ua = 0;
    for (int32_t k = start[a]; k < start[a + 1]; ++k) {
      const uint32_t b = others[k] & kMask;
      const V d = x[b] + image[others[k] >> kShift] - xa;
      const V dd = d * d;
      const T r2 = dd[0] + dd[1] + dd[2];
      if (r2 >= rc2) continue;
      const T inverse = 1 / r2, q = s2 * inverse, q6 = q * q * q;
      T u = e4 * q6 * (q6 - 1), g = -12 * e4 * q6 * (q6 - T(0.5)) * inverse;
      if (kEnd == kShifted) u -= u_c;
      if (kEnd == kForceShift) {
        const T r = std::sqrt(r2);
        u -= u_c + (r - rc) * f_c;
        g -= f_c / r;
      }
      if (kEnd == kSmooth) {
        const T t = std::min(std::max((r2 - on2) * span, T(0)), T(1));
        const T s = 1 + t * t * t * (-10 + t * (15 - 6 * t)), h = t * (1 - t);
        g = g * s - u * 60 * h * h * span;  // (d switch/dr)/r = -30 h² · 2/(rc² - on²)
        u *= s;
      }
      const V p = d * g;
      fa += p;
      f[b] -= p;
      wx += p * d[0];
      wy += p * d[1];
      wz += p * d[2];
      ua += u;
      u_of[b] += u;
    }
    f[a] += fa;
    u_of[a] += ua;
    for (int c = 0; c < 3; ++c) {
      w[c] += wx[c];
      w[3 + c] += wy[c];
      w[6 + c] += wz[c];
    }
  }
  for (int64_t a = 0; a < n; ++a) {
    for (int c = 0; c < 3; ++c) forces[3 * order[a] + c] = f[a][c];
    energies[order[a]] = u_of[a] / 2;
  }
  for (int r = 0; r < 3; ++r)
    for (int c = 0; c < 3; ++c) virial[3 * r + c] = static_cast<T>((w[3 * r + c] + w[3 * c + r]) / 2);
}

template <ffi::DataType D>
ffi::Error lennard_jones(ffi::Buffer<D> pos, ffi::Buffer<D> cell, ffi::Buffer<ffi::S32> order, ffi::Buffer<ffi::S32> wrap,
                         ffi::Buffer<ffi::S32> start, ffi::Buffer<ffi::U32> others, double epsilon, double sigma,
                         double cutoff, double onset, int64_t end, ffi::ResultBuffer<D> energies, ffi::ResultBuffer<D> forces,
                         ffi::ResultBuffer<D> virial) {
  using T = ffi::NativeType<D>;
  auto run = end == kTruncate     ? sum<T, kTruncate>
             : end == kShifted    ? sum<T, kShifted>
             : end == kForceShift ? sum<T, kForceShift>
                                  : sum<T, kSmooth>;
  run(pos.typed_data(), cell.typed_data(), order.typed_data(), wrap.typed_data(), start.typed_data(), others.typed_data(),
      pos.dimensions()[0], epsilon, sigma, cutoff, onset, energies->typed_data(), forces->typed_data(),
      virial->typed_data());
  return ffi::Error::Success();
}

}  // namespace

#define SCIAX_HALF(NAME, D)                                     \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(NAME, half<D>,                  \
                                ffi::Ffi::Bind()                \
                                    .Arg<ffi::Buffer<D>>()      \
                                    .Arg<ffi::Buffer<D>>()      \
                                    .Arg<ffi::Buffer<ffi::S32>>() \
                                    .Attr<double>("cutoff")     \
                                    .Ret<ffi::Buffer<ffi::S32>>() \
                                    .Ret<ffi::Buffer<ffi::S32>>() \
                                    .Ret<ffi::Buffer<ffi::S32>>() \
                                    .Ret<ffi::Buffer<ffi::U32>>() \
                                    .Ret<ffi::Buffer<ffi::S32>>())

#define SCIAX_LJ(NAME, D)                                        \
  XLA_FFI_DEFINE_HANDLER_SYMBOL(NAME, lennard_jones<D>,          \
                                ffi::Ffi::Bind()                 \
                                    .Arg<ffi::Buffer<D>>()       \
                                    .Arg<ffi::Buffer<D>>()       \
                                    .Arg<ffi::Buffer<ffi::S32>>() \
                                    .Arg<ffi::Buffer<ffi::S32>>() \
                                    .Arg<ffi::Buffer<ffi::S32>>() \
                                    .Arg<ffi::Buffer<ffi::U32>>() \
                                    .Attr<double>("epsilon")     \
                                    .Attr<double>("sigma")       \
                                    .Attr<double>("cutoff")      \
                                    .Attr<double>("onset")       \
                                    .Attr<int64_t>("end")        \
                                    .Ret<ffi::Buffer<D>>()       \
                                    .Ret<ffi::Buffer<D>>()       \
                                    .Ret<ffi::Buffer<D>>())

SCIAX_HALF(sciax_half_f32, ffi::F32);
SCIAX_HALF(sciax_half_f64, ffi::F64);
SCIAX_LJ(sciax_lennard_jones_f32, ffi::F32);
SCIAX_LJ(sciax_lennard_jones_f64, ffi::F64);

static PyObject* targets(PyObject*, PyObject*) {
  return capsules({{"sciax_half_f32", reinterpret_cast<void*>(sciax_half_f32)},
                   {"sciax_half_f64", reinterpret_cast<void*>(sciax_half_f64)},
                   {"sciax_lennard_jones_f32", reinterpret_cast<void*>(sciax_lennard_jones_f32)},
                   {"sciax_lennard_jones_f64", reinterpret_cast<void*>(sciax_lennard_jones_f64)}});
}

static PyMethodDef methods[] = {{"targets", targets, METH_NOARGS, "FFI targets by name."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_pairforces", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__pairforces(void) { return PyModule_Create(&module); }
