// Neighbour pairs of a set of atoms by sorted cells: any cell, any periodicity, several images of a neighbour.
// XLA FFI calls for float32 and float64; called by sciax.core.ops.neighbours.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

// Rows of `basis` span the space: periodic directions keep the cell vector, open ones get a unit vector normal to the rest.
// Returns false for a degenerate cell.
bool complete_basis(const double cell[9], const int32_t pbc[3], double basis[9]) {
  for (int k = 0; k < 9; ++k) basis[k] = cell[k];
  auto cross = [&](const double* a, const double* b, double* out) {
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
    double n = std::sqrt(out[0] * out[0] + out[1] * out[1] + out[2] * out[2]);
    if (n > 0)
      for (int c = 0; c < 3; ++c) out[c] /= n;
    return n > 0;
  };
  int periodic = (pbc[0] != 0) + (pbc[1] != 0) + (pbc[2] != 0);
  if (periodic == 0) {
    for (int k = 0; k < 9; ++k) basis[k] = (k % 4 == 0);
  } else if (periodic == 1) {
    int p = pbc[0] ? 0 : pbc[1] ? 1 : 2, q = (p + 1) % 3, r = (p + 2) % 3;
    const double* v = basis + 3 * p;
    int smallest = 0;
    for (int c = 1; c < 3; ++c)
      if (std::fabs(v[c]) < std::fabs(v[smallest])) smallest = c;
    double axis[3] = {0, 0, 0};
    axis[smallest] = 1;
    if (!cross(v, axis, basis + 3 * q)) return false;
    cross(v, basis + 3 * q, basis + 3 * r);
  } else if (periodic == 2) {
    int r = !pbc[0] ? 0 : !pbc[1] ? 1 : 2;
    if (!cross(basis + 3 * ((r + 1) % 3), basis + 3 * ((r + 2) % 3), basis + 3 * r)) return false;
  }
  return true;
}

bool invert(const double a[9], double out[9]) {
  double c[9] = {a[4] * a[8] - a[5] * a[7], a[2] * a[7] - a[1] * a[8], a[1] * a[5] - a[2] * a[4],
                 a[5] * a[6] - a[3] * a[8], a[0] * a[8] - a[2] * a[6], a[2] * a[3] - a[0] * a[5],
                 a[3] * a[7] - a[4] * a[6], a[1] * a[6] - a[0] * a[7], a[0] * a[4] - a[1] * a[3]};
  double det = a[0] * c[0] + a[1] * c[3] + a[2] * c[6];
  if (det == 0 || !std::isfinite(det)) return false;
  for (int k = 0; k < 9; ++k) out[k] = c[k] / det;
  return true;
}

template <typename T>
ffi::Error pairs(const T* pos, int64_t n, const T* cell_in, const int32_t* pbc, double cutoff, int64_t capacity,
                 int32_t* center, int32_t* other, int32_t* shift, int32_t* count_out) {
  double cell[9], basis[9], inv[9];
  for (int k = 0; k < 9; ++k) cell[k] = static_cast<double>(cell_in[k]);
  int64_t found = 0;
  bool sound = complete_basis(cell, pbc, basis) && invert(basis, inv);
  for (int64_t i = 0; sound && i < 3 * n; ++i) sound = std::isfinite(static_cast<double>(pos[i]));
  if (!sound) found = -1;  // the caller turns this into an error
  if (sound && n > 0) {
    // Fractional coordinates; wrapped along periodic directions, shifted to start at 0 along open ones.
    std::vector<double> frac(3 * n);
    std::vector<int32_t> wrap(3 * n, 0);
    double lo[3], hi[3], height[3];
    for (int c = 0; c < 3; ++c) {
      double s = 0;  // distance between the planes of direction c is 1/|column c of inv|
      for (int r = 0; r < 3; ++r) s += inv[3 * r + c] * inv[3 * r + c];
      height[c] = 1.0 / std::sqrt(s);
      lo[c] = 1e300;
      hi[c] = -1e300;
    }
    for (int64_t i = 0; i < n; ++i)
      for (int c = 0; c < 3; ++c) {
        double f = 0;
        for (int r = 0; r < 3; ++r) f += static_cast<double>(pos[3 * i + r]) * inv[3 * r + c];
        if (pbc[c]) {
          double w = std::floor(f);
          wrap[3 * i + c] = static_cast<int32_t>(w);
          f -= w;
        }
        frac[3 * i + c] = f;
        lo[c] = std::min(lo[c], f);
        hi[c] = std::max(hi[c], f);
      }
    int64_t bins[3], reach[3];
    double origin[3], width[3];
    double limit = std::max(1.0, std::cbrt(static_cast<double>(n)) * 2);  // no more bins than a few per atom
    for (int c = 0; c < 3; ++c) {
      origin[c] = pbc[c] ? 0.0 : lo[c];
      double extent = pbc[c] ? height[c] : (hi[c] - lo[c]) * height[c];
      // half-cutoff bins: 5^3 bins of 1/8 of the volume hold 58 % of the candidates of 3^3 whole ones
      int64_t want = static_cast<int64_t>(std::min(std::floor(2 * extent / cutoff), 1e6));
      bins[c] = std::max<int64_t>(1, std::min<int64_t>(want, static_cast<int64_t>(limit)));
      double bin_length = extent / bins[c];
      width[c] = pbc[c] ? 1.0 / bins[c] : std::max((hi[c] - lo[c]) / bins[c], 1e-300);
      // open directions never look past their first or last bin
      reach[c] = bin_length > 0 ? static_cast<int64_t>(std::ceil(cutoff / bin_length * (1 + 1e-12))) : 0;
      if (!pbc[c]) reach[c] = std::min(reach[c], bins[c] - 1);
    }
    int64_t total = bins[0] * bins[1] * bins[2];
    std::vector<int32_t> bin_of(n), start(total + 1, 0), order(n);
    for (int64_t i = 0; i < n; ++i) {
      int64_t b[3];
      for (int c = 0; c < 3; ++c) {
        b[c] = static_cast<int64_t>((frac[3 * i + c] - origin[c]) / width[c]);
        b[c] = std::max<int64_t>(0, std::min(b[c], bins[c] - 1));
      }
      bin_of[i] = static_cast<int32_t>((b[0] * bins[1] + b[1]) * bins[2] + b[2]);
      start[bin_of[i] + 1]++;
    }
    for (int64_t b = 0; b < total; ++b) start[b + 1] += start[b];
    std::vector<int32_t> fill(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < n; ++i) order[fill[bin_of[i]]++] = static_cast<int32_t>(i);
    // positions relative to the origin (wrapped), in bin order: contiguous for the inner loop
    std::vector<double> x(n), y(n), z(n), wx(n), wy(n), wz(n);
    for (int64_t i = 0; i < n; ++i) {
      double f[3];
      for (int c = 0; c < 3; ++c) f[c] = frac[3 * i + c] - (pbc[c] ? 0.0 : origin[c]);
      wx[i] = f[0] * basis[0] + f[1] * basis[3] + f[2] * basis[6];
      wy[i] = f[0] * basis[1] + f[1] * basis[4] + f[2] * basis[7];
      wz[i] = f[0] * basis[2] + f[1] * basis[5] + f[2] * basis[8];
    }
    for (int64_t s = 0; s < n; ++s) {
      x[s] = wx[order[s]];
      y[s] = wy[order[s]];
      z[s] = wz[order[s]];
    }
    double cut2 = cutoff * cutoff;
    auto floor_div = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
    for (int64_t i = 0; i < n; ++i) {
      int64_t rest = bin_of[i];
      int64_t b2 = rest % bins[2];
      rest /= bins[2];
      int64_t b1 = rest % bins[1], b0 = rest / bins[1];
      for (int64_t d0 = -reach[0]; d0 <= reach[0]; ++d0) {
        int64_t q0 = b0 + d0, s0 = 0;
        if (pbc[0]) {
          s0 = floor_div(q0, bins[0]);
          q0 -= s0 * bins[0];
        } else if (q0 < 0 || q0 >= bins[0]) {
          continue;
        }
        for (int64_t d1 = -reach[1]; d1 <= reach[1]; ++d1) {
          int64_t q1 = b1 + d1, s1 = 0;
          if (pbc[1]) {
            s1 = floor_div(q1, bins[1]);
            q1 -= s1 * bins[1];
          } else if (q1 < 0 || q1 >= bins[1]) {
            continue;
          }
          for (int64_t d2 = -reach[2]; d2 <= reach[2];) {
            int64_t q2 = b2 + d2, s2 = 0;
            if (pbc[2]) {
              s2 = floor_div(q2, bins[2]);
              q2 -= s2 * bins[2];
            } else if (q2 < 0 || q2 >= bins[2]) {
              ++d2;
              continue;
            }
            // bins along the last direction lie one behind the other: take the whole run in one loop
            int64_t run = std::min(bins[2] - q2, reach[2] - d2 + 1);
            int64_t first = (q0 * bins[1] + q1) * bins[2] + q2;
            double ox = s0 * basis[0] + s1 * basis[3] + s2 * basis[6] - wx[i];
            double oy = s0 * basis[1] + s1 * basis[4] + s2 * basis[7] - wy[i];
            double oz = s0 * basis[2] + s1 * basis[5] + s2 * basis[8] - wz[i];
            bool home = s0 == 0 && s1 == 0 && s2 == 0;
            for (int32_t s = start[first]; s < start[first + run]; ++s) {
              double dx = x[s] + ox, dy = y[s] + oy, dz = z[s] + oz;
              double r2 = dx * dx + dy * dy + dz * dz;
              if (r2 < cut2) {
                int32_t j = order[s];
                if (home && j == i) continue;
                if (found < capacity) {
                  center[found] = static_cast<int32_t>(i);
                  other[found] = j;
                  shift[3 * found] = static_cast<int32_t>(s0) + wrap[3 * i] - wrap[3 * j];
                  shift[3 * found + 1] = static_cast<int32_t>(s1) + wrap[3 * i + 1] - wrap[3 * j + 1];
                  shift[3 * found + 2] = static_cast<int32_t>(s2) + wrap[3 * i + 2] - wrap[3 * j + 2];
                }
                ++found;
              }
            }
            d2 += run;
          }
        }
      }
    }
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
  PyObject* out = PyDict_New();
  if (!out) return nullptr;
  struct {
    const char* name;
    void* function;
  } table[] = {{"sciax_neighbours_f32", reinterpret_cast<void*>(sciax_neighbours_f32)},
               {"sciax_neighbours_f64", reinterpret_cast<void*>(sciax_neighbours_f64)}};
  for (auto& entry : table) {
    PyObject* capsule = PyCapsule_New(entry.function, "xla._CUSTOM_CALL_TARGET", nullptr);
    if (!capsule || PyDict_SetItemString(out, entry.name, capsule) < 0) return nullptr;
    Py_DECREF(capsule);
  }
  return out;
}

static PyMethodDef methods[] = {{"targets", targets, METH_NOARGS, "FFI targets by name."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_neighbours", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__neighbours(void) { return PyModule_Create(&module); }
