// Leapfrog steps of the Yee lattice on CPU: one pass over memory for several steps, in place, with absorbing slabs, point
// currents and point records. XLA FFI call for float32 and float64; called by sciax.core.ops.yee.
//
// A sweep updates H and then E of one x-plane after the other; H of plane i needs E of planes i and i + 1 before their step,
// E of plane i needs H of planes i - 1 and i after theirs. So the next step may follow two planes behind while its planes are
// still in cache (temporal blocking), and the sweeps of several threads follow each other the same way.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "capsules.h"
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

constexpr int kMaxSlabs = 6;

template <typename T>
struct Slab {
  int64_t axis, start, size;
  const T *be, *ce, *bh, *ch;
  T *psi_e[2], *psi_h[2];  // targets (axis + 1, axis + 2) mod 3
};

template <typename T>
struct Problem {
  int64_t nx, ny, nz;
  T* e[3];
  T* h[3];
  const T* cb[3];     // full arrays, or null
  T cb_scalar, db;    // used where cb is null; db always
  bool wall[3];       // conductor at index 0 (only read where cb is null: else cb holds it)
  const T *ie[3], *ih[3];
  std::vector<T> dz, jz;  // db * ie[2], and ih[2] (times cb_scalar where cb is null)
  int slabs;
  Slab<T> slab[kMaxSlabs];
  std::vector<T> zero;  // a plane of zeros: what lies beyond a face
  // point currents and records, sorted by plane; offsets of length nx + 1
  const int32_t *point_index, *point_component, *point_patch;
  const T *point_value, *table;
  int64_t patches;
  std::vector<int32_t> points_by_plane, point_offset;
  const int32_t *probe_index, *probe_component;
  int64_t probes;
  std::vector<int32_t> probes_by_plane, probe_offset;
  T* record;
};

#define SCIAX_INLINE inline __attribute__((always_inline))

// Memory of two targets of one row: psi = b psi + c (up - down), target += gain psi. kLine: b and c lie along the row.
template <typename T, bool kGains, bool kLine>
SCIAX_INLINE void memory_row(T* __restrict t1, T* __restrict t2, T* __restrict psi1, T* __restrict psi2, const T* up1, const T* down1,
                             const T* up2, const T* down2, const T* b, const T* c, T g1, T g2, const T* cb1, const T* cb2, int64_t n) {
  const T b0 = *b, c0 = *c;
#pragma GCC ivdep
  for (int64_t k = 0; k < n; ++k) {
    const T bk = kLine ? b[k] : b0, ck = kLine ? c[k] : c0;
    const T m1 = bk * psi1[k] + ck * (up1[k] - down1[k]), m2 = bk * psi2[k] + ck * (up2[k] - down2[k]);
    psi1[k] = m1, psi2[k] = m2;
    t1[k] += kGains ? g1 * cb1[k] * m1 : g1 * m1;
    t2[k] += kGains ? g2 * cb2[k] * m2 : g2 * m2;
  }
}

// The same for a short row with b and c along it, in vectors of 32 bytes: the last one overlaps the one before, so it is read
// before anything is written; both write the same values where they overlap.
template <typename T, bool kGains>
SCIAX_INLINE void memory_line(T* t1, T* t2, T* psi1, T* psi2, const T* up1, const T* down1, const T* up2, const T* down2, const T* b,
                              const T* c, T g1, T g2, const T* cb1, const T* cb2, int64_t n) {
  constexpr int64_t kWide = 32 / sizeof(T);
  typedef T Wide __attribute__((vector_size(32)));
  if (n < kWide) {
    memory_row<T, kGains, true>(t1, t2, psi1, psi2, up1, down1, up2, down2, b, c, g1, g2, cb1, cb2, n);
    return;
  }
#define SCIAX_LOAD(name, from) Wide name; __builtin_memcpy(&name, from, sizeof(Wide))
#define SCIAX_WIDE(k, m1, m2, f1, f2) \
  Wide m1, m2, f1, f2; \
  { \
    SCIAX_LOAD(bk, b + (k)); SCIAX_LOAD(ck, c + (k)); SCIAX_LOAD(u1, up1 + (k)); SCIAX_LOAD(d1, down1 + (k)); \
    SCIAX_LOAD(u2, up2 + (k)); SCIAX_LOAD(d2, down2 + (k)); SCIAX_LOAD(p1, psi1 + (k)); SCIAX_LOAD(p2, psi2 + (k)); \
    SCIAX_LOAD(a1, t1 + (k)); SCIAX_LOAD(a2, t2 + (k)); \
    m1 = bk * p1 + ck * (u1 - d1), m2 = bk * p2 + ck * (u2 - d2); \
    if (kGains) { \
      SCIAX_LOAD(w1, cb1 + (k)); SCIAX_LOAD(w2, cb2 + (k)); \
      f1 = a1 + g1 * w1 * m1, f2 = a2 + g2 * w2 * m2; \
    } else { \
      f1 = a1 + g1 * m1, f2 = a2 + g2 * m2; \
    } \
  }
#define SCIAX_STORE(k, m1, m2, f1, f2) \
  __builtin_memcpy(psi1 + (k), &m1, sizeof(Wide)), __builtin_memcpy(psi2 + (k), &m2, sizeof(Wide)); \
  __builtin_memcpy(t1 + (k), &f1, sizeof(Wide)), __builtin_memcpy(t2 + (k), &f2, sizeof(Wide))
  SCIAX_WIDE(n - kWide, tail1, tail2, to1, to2);
  for (int64_t k = 0; k + kWide < n; k += kWide) {
    SCIAX_WIDE(k, mine1, mine2, out1, out2);
    SCIAX_STORE(k, mine1, mine2, out1, out2);
  }
  SCIAX_STORE(n - kWide, tail1, tail2, to1, to2);
#undef SCIAX_LOAD
#undef SCIAX_WIDE
#undef SCIAX_STORE
}

// All slabs' share of row (i, j), while it is in the first cache. kElectric: E from differences of H (backward), else H from E.
template <typename T, bool kElectric, bool kGains>
SCIAX_INLINE void slab_row(Problem<T>& p, int64_t i, int64_t j) {
  const int64_t ny = p.ny, nz = p.nz, plane = ny * nz, at = i * plane + j * nz;
  const T* zero = p.zero.data();
  // on a conductor (scalar cb only) the tangential components do not move
  auto held = [&](int axis, int64_t index, int to) { return kElectric && !kGains && p.wall[axis] && index == 0 && axis != to; };
  for (int q = 0; q < p.slabs; ++q) {
    Slab<T>& s = p.slab[q];
    const int a = int(s.axis), to1 = (a + 1) % 3, to2 = (a + 2) % 3;
    const int64_t index = a == 0 ? i : j, r = index - s.start;
    if (a < 2 && (r < 0 || r >= s.size)) continue;
    const T *b = kElectric ? s.bh : s.be, *c = kElectric ? s.ch : s.ce;
    T *t1 = (kElectric ? p.e : p.h)[to1] + at, *t2 = (kElectric ? p.e : p.h)[to2] + at;
    const T *h1 = (kElectric ? p.h : p.e)[to2] + at, *h2 = (kElectric ? p.h : p.e)[to1] + at;
    T *psi1 = (kElectric ? s.psi_e : s.psi_h)[0], *psi2 = (kElectric ? s.psi_e : s.psi_h)[1];
    const T *cb1 = kElectric && kGains ? p.cb[to1] + at : nullptr, *cb2 = kElectric && kGains ? p.cb[to2] + at : nullptr;
    const T gain = !kElectric ? p.db : kGains ? T(-1) : -p.cb_scalar;
    const T g1 = held(0, i, to1) || held(1, j, to1) ? T(0) : gain, g2 = held(0, i, to2) || held(1, j, to2) ? T(0) : -gain;
    if (a < 2) {
      const int64_t step = a == 0 ? plane : nz, row = (a == 0 ? r * ny + j : i * s.size + r) * nz;
      const bool beyond = kElectric ? index == 0 : index + 1 == (a == 0 ? p.nx : ny);
      const T *o1 = beyond ? zero : kElectric ? h1 - step : h1 + step, *o2 = beyond ? zero : kElectric ? h2 - step : h2 + step;
      psi1 += row, psi2 += row;
      memory_row<T, kElectric && kGains, false>(t1, t2, psi1, psi2, kElectric ? h1 : o1, kElectric ? o1 : h1, kElectric ? h2 : o2,
                                                kElectric ? o2 : h2, b + r, c + r, g1, g2, cb1, cb2, nz);
      if (held(2, 0, to1)) t1[0] -= g1 * psi1[0];  // they were zero
      if (held(2, 0, to2)) t2[0] -= g2 * psi2[0];
    } else {
      const int64_t row = (i * ny + j) * s.size, last = s.start + s.size;
      // the one cell beyond which lies nothing
      const int64_t edge = kElectric ? (s.start == 0 ? 0 : -1) : (last == nz ? nz - 1 : -1);
      psi1 += row, psi2 += row;
      if (edge >= 0) {
        const int64_t k = edge - s.start;
        const T sign = kElectric ? T(1) : T(-1);
        psi1[k] = b[k] * psi1[k] + sign * c[k] * h1[edge], psi2[k] = b[k] * psi2[k] + sign * c[k] * h2[edge];
        if (!(kElectric && !kGains && p.wall[2])) {
          t1[edge] += (kElectric && kGains ? g1 * cb1[edge] : g1) * psi1[k];
          t2[edge] += (kElectric && kGains ? g2 * cb2[edge] : g2) * psi2[k];
        }
      }
      const int64_t from = kElectric && edge >= 0 ? 1 : 0, n = s.size - (edge >= 0 ? 1 : 0), z = s.start + from;
      const int64_t up = kElectric ? z : z + 1, down = kElectric ? z - 1 : z;
      memory_line<T, kElectric && kGains>(t1 + z, t2 + z, psi1 + from, psi2 + from, h1 + up, h1 + down, h2 + up, h2 + down, b + from,
                                          c + from, g1, g2, kElectric && kGains ? cb1 + z : nullptr,
                                               kElectric && kGains ? cb2 + z : nullptr, n);
    }
  }
}

template <typename T>
SCIAX_INLINE void h_plane(Problem<T>& p, int64_t i) {
  const int64_t ny = p.ny, nz = p.nz, plane = ny * nz;
  const T dx = p.db * p.ie[0][i];
  const T* __restrict dz = p.dz.data();
  for (int64_t j = 0; j < ny; ++j) {
    const int64_t at = i * plane + j * nz;
    const T dy = p.db * p.ie[1][j];
    const T *ex = p.e[0] + at, *ey = p.e[1] + at, *ez = p.e[2] + at;
    const T *zero = p.zero.data();
    const T *exj = j + 1 < ny ? ex + nz : zero, *ezj = j + 1 < ny ? ez + nz : zero;
    const T *eyi = i + 1 < p.nx ? ey + plane : zero, *ezi = i + 1 < p.nx ? ez + plane : zero;
    T *__restrict hx = p.h[0] + at, *__restrict hy = p.h[1] + at, *__restrict hz = p.h[2] + at;
    const int64_t last = nz - 1;
#pragma GCC ivdep
    for (int64_t k = 0; k < last; ++k) {
      hx[k] -= dy * (ezj[k] - ez[k]) - dz[k] * (ey[k + 1] - ey[k]);
      hy[k] -= dz[k] * (ex[k + 1] - ex[k]) - dx * (ezi[k] - ez[k]);
      hz[k] -= dx * (eyi[k] - ey[k]) - dy * (exj[k] - ex[k]);
    }
    hx[last] -= dy * (ezj[last] - ez[last]) + dz[last] * ey[last];
    hy[last] -= -dz[last] * ex[last] - dx * (ezi[last] - ez[last]);
    hz[last] -= dx * (eyi[last] - ey[last]) - dy * (exj[last] - ex[last]);
    if (p.slabs) slab_row<T, false, false>(p, i, j);
  }
}

template <typename T, bool kArray>
SCIAX_INLINE void e_plane(Problem<T>& p, int64_t i) {
  const int64_t ny = p.ny, nz = p.nz, plane = ny * nz;
  const T s = kArray ? T(1) : p.cb_scalar;
  const T jx = s * p.ih[0][i];
  const T* __restrict jz = p.jz.data();
  for (int64_t j = 0; j < ny; ++j) {
    const int64_t at = i * plane + j * nz;
    // On a conductor the tangential components do not move: their row factor is zero.
    const T ax = (!kArray && p.wall[1] && j == 0) ? T(0) : T(1);
    const T ay = (!kArray && p.wall[0] && i == 0) ? T(0) : T(1);
    const T az = ax * ay;
    const T jy = s * p.ih[1][j];
    const T *hx = p.h[0] + at, *hy = p.h[1] + at, *hz = p.h[2] + at;
    const T *zero = p.zero.data();
    const T *hxj = j > 0 ? hx - nz : zero, *hzj = j > 0 ? hz - nz : zero;
    const T *hyi = i > 0 ? hy - plane : zero, *hzi = i > 0 ? hz - plane : zero;
    T *__restrict ex = p.e[0] + at, *__restrict ey = p.e[1] + at, *__restrict ez = p.e[2] + at;
    const T *cx = kArray ? p.cb[0] + at : nullptr, *cy = kArray ? p.cb[1] + at : nullptr, *cz = kArray ? p.cb[2] + at : nullptr;
    const T first = (!kArray && p.wall[2]) ? T(0) : T(1);
    {
      const T x0 = jy * (hz[0] - hzj[0]) - jz[0] * hy[0], y0 = jz[0] * hx[0] - jx * (hz[0] - hzi[0]);
      const T z0 = jx * (hy[0] - hyi[0]) - jy * (hx[0] - hxj[0]);
      ex[0] += kArray ? cx[0] * x0 : first * ax * x0;
      ey[0] += kArray ? cy[0] * y0 : first * ay * y0;
      ez[0] += kArray ? cz[0] * z0 : az * z0;
    }
    if (!kArray && az == T(0)) {  // rows beside a wall
#pragma GCC ivdep
      for (int64_t k = 1; k < nz; ++k) {
        ex[k] += ax * (jy * (hz[k] - hzj[k]) - jz[k] * (hy[k] - hy[k - 1]));
        ey[k] += ay * (jz[k] * (hx[k] - hx[k - 1]) - jx * (hz[k] - hzi[k]));
      }
      if (p.slabs) slab_row<T, true, kArray>(p, i, j);
      continue;
    }
#pragma GCC ivdep
    for (int64_t k = 1; k < nz; ++k) {
      const T x = jy * (hz[k] - hzj[k]) - jz[k] * (hy[k] - hy[k - 1]);
      const T y = jz[k] * (hx[k] - hx[k - 1]) - jx * (hz[k] - hzi[k]);
      const T z = jx * (hy[k] - hyi[k]) - jy * (hx[k] - hxj[k]);
      ex[k] += kArray ? cx[k] * x : x;
      ey[k] += kArray ? cy[k] * y : y;
      ez[k] += kArray ? cz[k] * z : z;
    }
    if (p.slabs) slab_row<T, true, kArray>(p, i, j);
  }
}

template <typename T>
SCIAX_INLINE void points(Problem<T>& p, int64_t i, int64_t step, bool electric) {
  for (int32_t q = p.point_offset[i]; q < p.point_offset[i + 1]; ++q) {
    const int32_t m = p.points_by_plane[q], c = p.point_component[m];
    if ((c < 3) == electric) (electric ? p.e[c] : p.h[c - 3])[p.point_index[m]] += p.point_value[m] * p.table[step * p.patches + p.point_patch[m]];
  }
}

template <typename T>
SCIAX_INLINE void records(Problem<T>& p, int64_t i, int64_t step) {
  for (int32_t q = p.probe_offset[i]; q < p.probe_offset[i + 1]; ++q) {
    const int32_t m = p.probes_by_plane[q], c = p.probe_component[m];
    p.record[step * p.probes + m] = (c < 3 ? p.e[c] : p.h[c - 3])[p.probe_index[m]];
  }
}

template <typename T, bool kArray>
SCIAX_INLINE void work_plane(Problem<T>& p, int64_t i, int64_t step) {
  h_plane(p, i);
  points(p, i, step, false);
  e_plane<T, kArray>(p, i);
  points(p, i, step, true);
  records(p, i, step);
}

#if defined(__x86_64__) && defined(__GNUC__)
#define SCIAX_X86 1
template <typename T, bool kArray>
__attribute__((target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512"))) void plane_avx512(Problem<T>& p, int64_t i, int64_t s) {
  work_plane<T, kArray>(p, i, s);
}
template <typename T, bool kArray>
__attribute__((target("avx2,fma"))) void plane_avx2(Problem<T>& p, int64_t i, int64_t s) {
  work_plane<T, kArray>(p, i, s);
}
#endif
template <typename T, bool kArray>
void plane_base(Problem<T>& p, int64_t i, int64_t s) {
  work_plane<T, kArray>(p, i, s);
}

template <typename T>
using Plane = void (*)(Problem<T>&, int64_t, int64_t);

template <typename T, bool kArray>
Plane<T> choose() {
#ifdef SCIAX_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return plane_avx512<T, kArray>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return plane_avx2<T, kArray>;
#endif
  return plane_base<T, kArray>;
}

struct alignas(64) Progress {
  std::atomic<int64_t> planes{0};
};

// Groups of `levels` consecutive steps; thread t takes groups t, t + threads, ... A group's first step may touch plane i once
// the group before it has finished plane i + 1 with its last step.
template <typename T>
void sweep(Problem<T>& p, Plane<T> plane, int64_t steps, int64_t levels, int threads) {
  const int64_t groups = (steps + levels - 1) / levels, nx = p.nx;
  std::unique_ptr<Progress[]> done(new Progress[groups + 1]);
  done[0].planes.store(nx);
  auto run = [&](int t) {
    for (int64_t g = t; g < groups; g += threads) {
      const int64_t first = g * levels, count = std::min(levels, steps - first);
      std::atomic<int64_t>&before = done[g].planes, &mine = done[g + 1].planes;
      for (int64_t w = 0; w < nx + 2 * (count - 1); ++w) {
        if (w < nx) {
          const int64_t need = std::min(w + 2, nx);
          for (int spin = 0; before.load(std::memory_order_acquire) < need; ++spin)
            if (spin > 200) sched_yield();
        }
        for (int64_t b = 0; b < count; ++b) {
          const int64_t i = w - 2 * b;
          if (i >= 0 && i < nx) plane(p, i, first + b);
        }
        const int64_t finished = w - 2 * (count - 1) + 1;
        if (finished > 0) mine.store(finished, std::memory_order_release);
      }
    }
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t) pool.emplace_back(run, t);
  run(0);
  for (auto& th : pool) th.join();
}

void by_plane(const int32_t* index, int64_t n, int64_t nx, int64_t plane, std::vector<int32_t>& order, std::vector<int32_t>& offset) {
  offset.assign(nx + 1, 0);
  for (int64_t m = 0; m < n; ++m) ++offset[index[m] / plane + 1];
  for (int64_t i = 0; i < nx; ++i) offset[i + 1] += offset[i];
  order.resize(n);
  std::vector<int32_t> next(offset.begin(), offset.end() - 1);
  for (int64_t m = 0; m < n; ++m) order[next[index[m] / plane]++] = int32_t(m);
}

struct Meta {
  int64_t steps, levels, threads, walls, array;
  double cb;
  ffi::Span<const int64_t> slabs;  // axis, start for each
};

template <typename T>
ffi::Error leapfrog(const Meta& meta, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  int at = 0, out = 0;
  auto in = [&]() { return args.get<ffi::AnyBuffer>(at++).value(); };
  auto result = [&]() { return *rets.get<ffi::AnyBuffer>(out++).value(); };
  auto take = [&]() -> T* {  // an argument that is updated in place
    auto a = in();
    auto r = result();
    if (a.untyped_data() != r.untyped_data()) std::memcpy(r.untyped_data(), a.untyped_data(), a.size_bytes());
    return static_cast<T*>(r.untyped_data());
  };
  auto read = [&]() { return static_cast<const T*>(in().untyped_data()); };
  auto ints = [&](int64_t& n) {
    auto a = in();
    n = a.element_count();
    return static_cast<const int32_t*>(a.untyped_data());
  };
  Problem<T> p;
  auto shape = args.get<ffi::AnyBuffer>(0).value().dimensions();
  p.nx = shape[0], p.ny = shape[1], p.nz = shape[2];
  for (auto& f : p.e) f = take();
  for (auto& f : p.h) f = take();
  for (auto& c : p.cb) {
    const T* v = read();
    c = meta.array ? v : nullptr;
  }
  for (auto& v : p.ie) v = read();
  for (auto& v : p.ih) v = read();
  p.db = *read();
  p.cb_scalar = T(meta.cb);
  for (int a = 0; a < 3; ++a) p.wall[a] = (meta.walls >> a) & 1;
  p.dz.resize(p.nz), p.jz.resize(p.nz);
  for (int64_t k = 0; k < p.nz; ++k) {
    p.dz[k] = p.db * p.ie[2][k];
    p.jz[k] = (meta.array ? T(1) : p.cb_scalar) * p.ih[2][k];
  }
  p.zero.assign(p.nz + 16, T(0));
  const int64_t plane = p.ny * p.nz;
  int64_t count = 0;
  p.point_index = ints(count);
  by_plane(p.point_index, count, p.nx, plane, p.points_by_plane, p.point_offset);
  p.point_component = ints(count);
  p.point_patch = ints(count);
  p.point_value = read();
  auto table = in();
  p.table = static_cast<const T*>(table.untyped_data());
  p.patches = table.dimensions()[1];
  p.probe_index = ints(p.probes);
  by_plane(p.probe_index, p.probes, p.nx, plane, p.probes_by_plane, p.probe_offset);
  p.probe_component = ints(count);
  p.slabs = int(meta.slabs.size() / 2);
  if (p.slabs > kMaxSlabs) return ffi::Error::InvalidArgument("more than six absorbing slabs");
  for (int q = 0; q < p.slabs; ++q) {
    Slab<T>& s = p.slab[q];
    s.axis = meta.slabs[2 * q], s.start = meta.slabs[2 * q + 1];
    auto be = in();
    s.size = be.element_count();
    s.be = static_cast<const T*>(be.untyped_data());
    s.ce = read(), s.bh = read(), s.ch = read();
    for (auto& v : s.psi_e) v = take();
    for (auto& v : s.psi_h) v = take();
  }
  p.record = static_cast<T*>(result().untyped_data());
  Plane<T> work = meta.array ? choose<T, true>() : choose<T, false>();
  if (p.nx * plane > 0 && meta.steps > 0)
    sweep(p, work, meta.steps, std::max<int64_t>(1, meta.levels), int(std::max<int64_t>(1, meta.threads)));
  return ffi::Error::Success();
}

ffi::Error call(int64_t steps, int64_t levels, int64_t threads, int64_t walls, int64_t array, double cb,
                ffi::Span<const int64_t> slabs, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  const Meta meta{steps, levels, threads, walls, array, cb, slabs};
  switch (args.get<ffi::AnyBuffer>(0).value().element_type()) {
    case ffi::F32: return leapfrog<float>(meta, args, rets);
    case ffi::F64: return leapfrog<double>(meta, args, rets);
    default: return ffi::Error::InvalidArgument("the native leapfrog takes float32 and float64");
  }
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(sciax_yee_leapfrog, call,
                              ffi::Ffi::Bind()
                                  .Attr<int64_t>("steps")
                                  .Attr<int64_t>("levels")
                                  .Attr<int64_t>("threads")
                                  .Attr<int64_t>("walls")
                                  .Attr<int64_t>("array")
                                  .Attr<double>("cb")
                                  .Attr<ffi::Span<const int64_t>>("slabs")
                                  .RemainingArgs()
                                  .RemainingRets());

static PyObject* targets(PyObject*, PyObject*) {
  return capsules({{"sciax_yee_leapfrog", reinterpret_cast<void*>(sciax_yee_leapfrog)}});
}

static PyMethodDef methods[] = {{"targets", targets, METH_NOARGS, "FFI targets by name."}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_yee", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__yee(void) { return PyModule_Create(&module); }
