// Atoms sorted into the cells of a grid: any lattice, any periodicity. Shared by the pair searches.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace sciax {

// Rows of `basis` span the space: periodic directions keep the cell vector, open ones get a unit vector normal to the rest.
// Returns false for a degenerate cell.
inline bool complete_basis(const double cell[9], const int32_t pbc[3], double basis[9]) {
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

inline bool invert(const double a[9], double out[9]) {
  double c[9] = {a[4] * a[8] - a[5] * a[7], a[2] * a[7] - a[1] * a[8], a[1] * a[5] - a[2] * a[4],
                 a[5] * a[6] - a[3] * a[8], a[0] * a[8] - a[2] * a[6], a[2] * a[3] - a[0] * a[5],
                 a[3] * a[7] - a[4] * a[6], a[1] * a[6] - a[0] * a[7], a[0] * a[4] - a[1] * a[3]};
  double det = a[0] * c[0] + a[1] * c[3] + a[2] * c[6];
  if (det == 0 || !std::isfinite(det)) return false;
  for (int k = 0; k < 9; ++k) out[k] = c[k] / det;
  return true;
}

struct Cells {
  double basis[9], inv[9];
  int64_t bins[3], reach[3];
  bool periodic[3];
  std::vector<int32_t> wrap;             // [n, 3] lattice vectors taken off each atom to bring it into the cell
  std::vector<int32_t> bin_of;           // [n]
  std::vector<int32_t> start;            // [bins + 1] first slot of each bin
  std::vector<int32_t> order;            // [n] atom in each slot, bin by bin
  std::vector<double> wx, wy, wz;        // [n] wrapped positions
  std::vector<double> x, y, z;           // the same by slot: contiguous for the inner loop

  // False for a degenerate cell or a position that is not finite.
  template <typename T>
  bool fill(const T* pos, int64_t n, const T* cell_in, const int32_t* pbc, double cutoff) {
    double cell[9];
    for (int k = 0; k < 9; ++k) cell[k] = static_cast<double>(cell_in[k]);
    if (!complete_basis(cell, pbc, basis) || !invert(basis, inv)) return false;
    for (int64_t i = 0; i < 3 * n; ++i)
      if (!std::isfinite(static_cast<double>(pos[i]))) return false;
    if (n == 0) {
      start.assign(2, 0);
      return true;
    }
    // Fractional coordinates; wrapped along periodic directions, shifted to start at 0 along open ones.
    std::vector<double> frac(3 * n);
    wrap.assign(3 * n, 0);
    double lo[3], hi[3], height[3];
    for (int c = 0; c < 3; ++c) {
      periodic[c] = pbc[c] != 0;
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
        if (periodic[c]) {
          double w = std::floor(f);
          wrap[3 * i + c] = static_cast<int32_t>(w);
          f -= w;
        }
        frac[3 * i + c] = f;
        lo[c] = std::min(lo[c], f);
        hi[c] = std::max(hi[c], f);
      }
    double origin[3], width[3];
    double limit = std::max(1.0, std::cbrt(static_cast<double>(n)) * 2);  // no more bins than a few per atom
    for (int c = 0; c < 3; ++c) {
      origin[c] = periodic[c] ? 0.0 : lo[c];
      double extent = periodic[c] ? height[c] : (hi[c] - lo[c]) * height[c];
      // half-cutoff bins: 5^3 bins of 1/8 of the volume hold 58 % of the candidates of 3^3 whole ones
      int64_t want = static_cast<int64_t>(std::min(std::floor(2 * extent / cutoff), 1e6));
      bins[c] = std::max<int64_t>(1, std::min<int64_t>(want, static_cast<int64_t>(limit)));
      double bin_length = extent / bins[c];
      width[c] = periodic[c] ? 1.0 / bins[c] : std::max((hi[c] - lo[c]) / bins[c], 1e-300);
      // open directions never look past their first or last bin
      reach[c] = bin_length > 0 ? static_cast<int64_t>(std::ceil(cutoff / bin_length * (1 + 1e-12))) : 0;
      if (!periodic[c]) reach[c] = std::min(reach[c], bins[c] - 1);
    }
    int64_t total = bins[0] * bins[1] * bins[2];
    bin_of.resize(n);
    start.assign(total + 1, 0);
    order.resize(n);
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
    std::vector<int32_t> next(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < n; ++i) order[next[bin_of[i]]++] = static_cast<int32_t>(i);
    for (auto* v : {&wx, &wy, &wz, &x, &y, &z}) v->resize(n);
    for (int64_t i = 0; i < n; ++i) {
      double f[3];
      for (int c = 0; c < 3; ++c) f[c] = frac[3 * i + c] - (periodic[c] ? 0.0 : origin[c]);
      wx[i] = f[0] * basis[0] + f[1] * basis[3] + f[2] * basis[6];
      wy[i] = f[0] * basis[1] + f[1] * basis[4] + f[2] * basis[7];
      wz[i] = f[0] * basis[2] + f[1] * basis[5] + f[2] * basis[8];
    }
    for (int64_t s = 0; s < n; ++s) {
      x[s] = wx[order[s]];
      y[s] = wy[order[s]];
      z[s] = wz[order[s]];
    }
    return true;
  }

  // visit(first slot, end slot, offset of the image minus atom i, image) for every run of bins within reach of atom i.
  template <typename Visit>
  void runs(int64_t i, Visit visit) const {
    auto floor_div = [](int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); };
    int64_t rest = bin_of[i];
    int64_t b2 = rest % bins[2];
    rest /= bins[2];
    int64_t b1 = rest % bins[1], b0 = rest / bins[1];
    for (int64_t d0 = -reach[0]; d0 <= reach[0]; ++d0) {
      int64_t q0 = b0 + d0, s[3] = {0, 0, 0};
      if (periodic[0]) {
        s[0] = floor_div(q0, bins[0]);
        q0 -= s[0] * bins[0];
      } else if (q0 < 0 || q0 >= bins[0]) {
        continue;
      }
      for (int64_t d1 = -reach[1]; d1 <= reach[1]; ++d1) {
        int64_t q1 = b1 + d1;
        s[1] = 0;
        if (periodic[1]) {
          s[1] = floor_div(q1, bins[1]);
          q1 -= s[1] * bins[1];
        } else if (q1 < 0 || q1 >= bins[1]) {
          continue;
        }
        for (int64_t d2 = -reach[2]; d2 <= reach[2];) {
          int64_t q2 = b2 + d2;
          s[2] = 0;
          if (periodic[2]) {
            s[2] = floor_div(q2, bins[2]);
            q2 -= s[2] * bins[2];
          } else if (q2 < 0 || q2 >= bins[2]) {
            ++d2;
            continue;
          }
          // bins along the last direction lie one behind the other: take the whole run in one loop
          int64_t run = std::min(bins[2] - q2, reach[2] - d2 + 1);
          int64_t first = (q0 * bins[1] + q1) * bins[2] + q2;
          double ox = s[0] * basis[0] + s[1] * basis[3] + s[2] * basis[6] - wx[i];
          double oy = s[0] * basis[1] + s[1] * basis[4] + s[2] * basis[7] - wy[i];
          double oz = s[0] * basis[2] + s[1] * basis[5] + s[2] * basis[8] - wz[i];
          visit(start[first], start[first + run], ox, oy, oz, s);
          d2 += run;
        }
      }
    }
  }
};

}  // namespace sciax
