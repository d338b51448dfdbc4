// Cache-blocked state-vector kernels for one instruction set and one precision.
//
// Included several times by gates.cc, each time with NS (namespace), REAL, INT (an integer as wide as REAL) and VBYTES
// (bytes of a vector register) defined, inside a `#pragma GCC target` region: so no intrinsics are needed, only the
// compiler's vector extensions, and no template has to cross a target boundary.
//
// Amplitudes lie interleaved (re, im) in memory. A pass gathers blocks of 2^nb amplitudes, whose index bits are the pass's
// local qubits, into split real and imaginary scratch that stays in the L2 cache, and applies all of its instructions there.
// An instruction is psi'[i] = A[s] psi[i] + B[s] psi[i^x], s = parity(i & z), under a condition (see _program.py); only the
// bits of x must be local. Inside a block an amplitude is (vector index, lane); masks split accordingly.

namespace NS {

typedef REAL vec __attribute__((vector_size(VBYTES)));
typedef INT ivec __attribute__((vector_size(VBYTES)));
static const int W = VBYTES / sizeof(REAL);
static const int LW = __builtin_ctz(VBYTES / sizeof(REAL));
typedef std::complex<REAL> cplx;

#define INLINE static inline __attribute__((always_inline))

struct Block {  // geometry of one pass
  int nb, lo;
  const int64_t* local;  // nb qubits, ascending; the first `lo` are 0..lo-1
  std::vector<int64_t> outer;  // the other qubits
  std::vector<int64_t> row;  // global offsets of the 2^(nb-lo) contiguous runs
  int64_t vectors, blocks;

  Block(const int64_t* desc, int n) : nb((int)desc[0]), lo(0), local(desc + 1) {
    int64_t mask = 0;
    for (int k = 0; k < nb; k++) mask |= int64_t(1) << local[k];
    while (lo < nb && local[lo] == lo) lo++;
    for (int q = 0; q < n; q++)
      if (!(mask >> q & 1)) outer.push_back(q);
    row.resize(size_t(1) << (nb - lo));
    for (size_t r = 0; r < row.size(); r++) {
      int64_t offset = 0;
      for (int k = lo; k < nb; k++) offset |= int64_t(r >> (k - lo) & 1) << local[k];
      row[r] = offset;
    }
    vectors = nb > LW ? int64_t(1) << (nb - LW) : 1;
    blocks = int64_t(1) << (n - nb);
  }
  int64_t base(int64_t block) const {
    int64_t b = 0;
    for (size_t k = 0; k < outer.size(); k++) b |= (block >> k & 1) << outer[k];
    return b;
  }
  int64_t compress(int64_t mask) const {
    int64_t c = 0;
    for (int k = 0; k < nb; k++) c |= (mask >> local[k] & 1) << k;
    return c;
  }
  int64_t localmask() const {
    int64_t m = 0;
    for (int k = 0; k < nb; k++) m |= int64_t(1) << local[k];
    return m;
  }
};

enum Kind { GENERAL, REALS, ROTX, SWAPS };  // ROTX: A real, B imaginary; SWAPS: A = 0, B = 1

struct alignas(64) Op {
  vec A[2][2][2], B[2][2][2];  // [side][parity of the vector index][re, im]
  ivec shuffle, exchange;  // partner lane; the same where the condition holds
  ivec inside[2], odd;  // lanes as masks: where the condition holds, by side; where i & z is odd
  int64_t x, F, V, z, count;  // on vector indices: flips, fixed bits and their values, parity mask, iterations
  int64_t em, ev, ez;  // on the block's base index: condition and parity mask
  int64_t number;
  int xl, kind, pk, pfix, flip;
  unsigned lanes[2], lane_parity;  // bit sets over lanes
  bool varying, active, real_only, diagonal, exchangeable;
};

INLINE int par(int64_t v) { return __builtin_popcountll((unsigned long long)v) & 1; }

// What follows from the masks alone.
static void shape(Op& g, const int64_t* r, int64_t number, const Block& b) {
  const int64_t inside = b.localmask();
  const int64_t x = b.compress(r[0]), z = b.compress(r[1]), cm = b.compress(r[2]), cv = b.compress(r[3]);
  const int lanes = W - 1;
  g.number = number;
  g.active = r[4] & 1;
  g.real_only = r[4] >> 1 & 1;
  g.flip = par(r[0] & r[1]);
  g.em = r[2] & ~inside, g.ev = r[3] & ~inside, g.ez = r[1] & ~inside;
  g.x = x >> LW, g.xl = (int)(x & lanes), g.z = z >> LW;
  g.diagonal = x == 0;
  g.F = cm >> LW, g.V = cv >> LW;
  // Each pair of vectors must be visited once. A flipped bit inside the condition already singles out one side; otherwise a
  // flipped bit of the vector index is fixed at zero.
  const bool sided = (g.x & g.F) != 0;
  if (g.x && !sided) g.F |= g.x & -g.x;
  const int hv = b.nb > LW ? b.nb - LW : 0;
  g.count = int64_t(1) << (hv - __builtin_popcountll((unsigned long long)g.F));
  g.pk = par(g.x & g.z);
  g.varying = (g.z & ~g.F) != 0;
  g.pfix = par(g.V & g.z);
  const int cml = (int)(cm & lanes), cvl = (int)(cv & lanes), alt = cvl ^ (g.xl & cml), zl = (int)(z & lanes);
  g.lanes[0] = g.lanes[1] = g.lane_parity = 0;
  for (int l = 0; l < W; l++) {
    const int f = l & cml;
    const bool in0 = sided ? f == cvl : (f == cvl || f == alt), in1 = sided ? f == alt : in0;
    g.lanes[0] |= unsigned(in0) << l, g.lanes[1] |= unsigned(in1) << l;
    g.lane_parity |= unsigned(par(l & zl)) << l;
    g.shuffle[l] = l ^ g.xl, g.exchange[l] = in0 ? l ^ g.xl : l;
    g.inside[0][l] = in0 ? -1 : 0, g.inside[1][l] = in1 ? -1 : 0, g.odd[l] = par(l & zl) ? -1 : 0;
  }
  // An exchange of vectors that also moves lanes, or whose sides have different conditions, is left to the general code.
  g.exchangeable = !g.diagonal && (g.x == 0 || (!g.xl && g.lanes[0] == g.lanes[1]));
}

// The coefficients' tables, and what kind of gate they make.
static void fill(Op& g, const cplx* c, bool dagger) {
  cplx a[2] = {c[0], c[1]}, b[2] = {c[2], c[3]};
  if (g.diagonal)
    for (int s = 0; s < 2; s++) a[s] += b[s], b[s] = 0;
  if (dagger) {
    const cplx b0 = std::conj(b[g.flip]), b1 = std::conj(b[1 - g.flip]);
    a[0] = std::conj(a[0]), a[1] = std::conj(a[1]), b[0] = b0, b[1] = b1;
  }
  const bool a_real = a[0].imag() == 0 && a[1].imag() == 0, b_real = b[0].imag() == 0 && b[1].imag() == 0;
  const bool b_imag = b[0].real() == 0 && b[1].real() == 0;
  g.kind = a_real && b_real ? REALS : a_real && b_imag ? ROTX : GENERAL;
  const cplx zero(0), one(1);
  if (g.exchangeable && a[0] == zero && a[1] == zero && b[0] == one && b[1] == one) g.kind = SWAPS;
  const vec none = {}, ones = none + REAL(1);
  for (int p = 0; p < 2; p++) {
    const cplx ae = a[p], ao = a[1 - p], be = b[p], bo = b[1 - p];
    const vec ar = g.odd ? none + ao.real() : none + ae.real(), ai = g.odd ? none + ao.imag() : none + ae.imag();
    const vec br = g.odd ? none + bo.real() : none + be.real(), bi = g.odd ? none + bo.imag() : none + be.imag();
    for (int side = 0; side < (g.x ? 2 : 1); side++) {
      g.A[side][p][0] = g.inside[side] ? ar : ones, g.A[side][p][1] = g.inside[side] ? ai : none;
      g.B[side][p][0] = g.inside[side] ? br : none, g.B[side][p][1] = g.inside[side] ? bi : none;
    }
  }
}

INLINE vec turn(vec v, const Op& g, bool xl) { return xl ? __builtin_shuffle(v, g.shuffle) : v; }

// a x + b y for the structure of the coefficients
INLINE void mix(vec& outr, vec& outi, const vec* a, const vec* b, vec xr, vec xi, vec yr, vec yi, int kind) {
  if (kind == REALS) {
    outr = a[0] * xr + b[0] * yr, outi = a[0] * xi + b[0] * yi;
  } else if (kind == ROTX) {
    outr = a[0] * xr - b[1] * yi, outi = a[0] * xi + b[1] * yr;
  } else {
    outr = a[0] * xr - a[1] * xi + b[0] * yr - b[1] * yi;
    outi = a[0] * xi + a[1] * xr + b[0] * yi + b[1] * yr;
  }
}

// The vectors a gate visits: indices with (i & F) == V, `count` of them; p is the parity of i & z where that is the same for all.
struct Range {
  int64_t F, V, count;
  int p;
};

#define VISIT(r, j) \
  for (int64_t it_ = 0, t_ = 0, j = (r).V; it_ < (r).count; it_++, t_ = ((t_ | (r).F) + 1) & ~(r).F, j = t_ | (r).V)

INLINE void pairs(const Op& g, vec* R, vec* I, const Range r, int pe, const bool xl, const bool varying, const int kind) {
  vec a[2][2], b[2][2];
  if (!varying)
    for (int s = 0; s < 2; s++)
      for (int c = 0; c < 2; c++) a[s][c] = g.A[s][s ? r.p ^ g.pk : r.p][c], b[s][c] = g.B[s][s ? r.p ^ g.pk : r.p][c];
  VISIT(r, j) {
    const int64_t k = j ^ g.x;
    const vec xr = R[j], xi = I[j], yr = R[k], yi = I[k];
    if (kind == SWAPS) {
      R[j] = g.inside[0] ? yr : xr, I[j] = g.inside[0] ? yi : xi, R[k] = g.inside[0] ? xr : yr, I[k] = g.inside[0] ? xi : yi;
    } else if (varying) {
      const int p = pe ^ par(j & g.z), q = p ^ g.pk;
      mix(R[j], I[j], g.A[0][p], g.B[0][p], xr, xi, turn(yr, g, xl), turn(yi, g, xl), kind);
      mix(R[k], I[k], g.A[1][q], g.B[1][q], yr, yi, turn(xr, g, xl), turn(xi, g, xl), kind);
    } else {
      mix(R[j], I[j], a[0], b[0], xr, xi, turn(yr, g, xl), turn(yi, g, xl), kind);
      mix(R[k], I[k], a[1], b[1], yr, yi, turn(xr, g, xl), turn(xi, g, xl), kind);
    }
  }
}

INLINE void singles(const Op& g, vec* R, vec* I, const Range r, int pe, const bool diagonal, const bool varying, const int kind) {
  const vec a[2] = {g.A[0][r.p][0], g.A[0][r.p][1]}, b[2] = {g.B[0][r.p][0], g.B[0][r.p][1]};
  VISIT(r, j) {
    const vec xr = R[j], xi = I[j];
    if (kind == SWAPS) {
      R[j] = __builtin_shuffle(xr, g.exchange), I[j] = __builtin_shuffle(xi, g.exchange);
      continue;
    }
    const int p = varying ? pe ^ par(j & g.z) : 0;
    const vec *aj = varying ? g.A[0][p] : a, *bj = varying ? g.B[0][p] : b;
    if (!diagonal) {
      mix(R[j], I[j], aj, bj, xr, xi, turn(xr, g, true), turn(xi, g, true), kind);
    } else if (kind == REALS) {
      R[j] = aj[0] * xr, I[j] = aj[0] * xi;
    } else {
      R[j] = aj[0] * xr - aj[1] * xi, I[j] = aj[0] * xi + aj[1] * xr;
    }
  }
}

// Ranges of constant parity: one, or two when a single free bit decides it. Zero: the parity varies in a way not split.
INLINE int ranges(const Op& g, int pe, Range* out) {
  const int64_t free_bits = g.z & ~g.F;
  if (!g.varying) {
    out[0] = {g.F, g.V, g.count, pe ^ g.pfix};
    return 1;
  }
  if (free_bits & (free_bits - 1)) return 0;
  for (int v = 0; v < 2; v++) out[v] = {g.F | free_bits, g.V | (v ? free_bits : 0), g.count / 2, pe ^ g.pfix ^ v};
  return 2;
}

static void apply(const Op& g, vec* R, vec* I, int64_t base) {
  if ((base & g.em) != g.ev) return;
  const int pe = par(base & g.ez);
  Range part[2];
  const int parts = ranges(g, pe, part);
  const Range all = {g.F, g.V, g.count, 0};
#define EACH(CALL, ...)                                                      \
  if (!parts) CALL(g, R, I, all, pe, __VA_ARGS__ true, kind_);               \
  else for (int c_ = 0; c_ < parts; c_++) CALL(g, R, I, part[c_], pe, __VA_ARGS__ false, kind_)
#define BY_KIND(CALL, ...)                                         \
  if (g.kind == SWAPS) { enum { kind_ = SWAPS }; CALL(g, R, I, all, pe, __VA_ARGS__ false, kind_); } \
  else if (g.kind == REALS) { enum { kind_ = REALS }; EACH(CALL, __VA_ARGS__); } \
  else if (g.kind == ROTX) { enum { kind_ = ROTX }; EACH(CALL, __VA_ARGS__); }   \
  else { enum { kind_ = GENERAL }; EACH(CALL, __VA_ARGS__); }
#define COMMA ,
  if (g.diagonal) {
    if (g.kind == REALS) { enum { kind_ = REALS }; EACH(singles, true COMMA); }
    else { enum { kind_ = GENERAL }; EACH(singles, true COMMA); }
  } else if (g.x == 0) {
    BY_KIND(singles, false COMMA)
  } else if (!g.xl) {
    BY_KIND(pairs, false COMMA)
  } else {
    BY_KIND(pairs, true COMMA)
  }
#undef EACH
#undef BY_KIND
}

// -- the adjoint step: undo the gate on psi, add up the overlaps, carry lambda back ------------------------------------------

// conj(lambda) psi for the diagonal and for the partner
INLINE void overlap(vec* acc, vec lr, vec li, vec xr, vec xi, vec yr, vec yi, const bool reals) {
  acc[0] += lr * xr + li * xi;
  acc[2] += lr * yr + li * yi;
  if (!reals) {
    acc[1] += lr * xi - li * xr;
    acc[3] += lr * yi - li * yr;
  }
}

INLINE void back_pairs(const Op& g, vec* R, vec* I, vec* LR, vec* LI, const Range r, int pe, vec (*acc)[2][4], const bool xl,
                       const bool varying, const int kind, const bool reals) {
  vec a[2][2], b[2][2], s0[4] = {}, s1[4] = {};
  if (!varying)
    for (int s = 0; s < 2; s++)
      for (int c = 0; c < 2; c++) a[s][c] = g.A[s][s ? r.p ^ g.pk : r.p][c], b[s][c] = g.B[s][s ? r.p ^ g.pk : r.p][c];
  VISIT(r, j) {
    const int64_t k = j ^ g.x;
    const int p = varying ? pe ^ par(j & g.z) : 0, q = p ^ g.pk;
    const vec *aj = varying ? g.A[0][p] : a[0], *bj = varying ? g.B[0][p] : b[0];
    const vec *ak = varying ? g.A[1][q] : a[1], *bk = varying ? g.B[1][q] : b[1];
    const vec xr = R[j], xi = I[j], yr = R[k], yi = I[k];
    vec ur, ui, vr, vi;
    mix(ur, ui, aj, bj, xr, xi, turn(yr, g, xl), turn(yi, g, xl), kind);
    mix(vr, vi, ak, bk, yr, yi, turn(xr, g, xl), turn(xi, g, xl), kind);
    R[j] = ur, I[j] = ui, R[k] = vr, I[k] = vi;
    const vec lr = LR[j], li = LI[j], mr = LR[k], mi = LI[k];
    overlap(varying ? acc[0][p] : s0, lr, li, ur, ui, turn(vr, g, xl), turn(vi, g, xl), reals);
    overlap(varying ? acc[1][q] : s1, mr, mi, vr, vi, turn(ur, g, xl), turn(ui, g, xl), reals);
    mix(LR[j], LI[j], aj, bj, lr, li, turn(mr, g, xl), turn(mi, g, xl), kind);
    mix(LR[k], LI[k], ak, bk, mr, mi, turn(lr, g, xl), turn(li, g, xl), kind);
  }
  if (!varying)
    for (int c = 0; c < 4; c++) acc[0][r.p][c] += s0[c], acc[1][r.p ^ g.pk][c] += s1[c];
}

INLINE void back_singles(const Op& g, vec* R, vec* I, vec* LR, vec* LI, const Range r, int pe, vec (*acc)[2][4],
                         const bool diagonal, const bool varying, const int kind, const bool reals) {
  const vec a[2] = {g.A[0][r.p][0], g.A[0][r.p][1]}, b[2] = {g.B[0][r.p][0], g.B[0][r.p][1]};
  vec s[4] = {};
  VISIT(r, j) {
    const int p = varying ? pe ^ par(j & g.z) : 0;
    const vec *aj = varying ? g.A[0][p] : a, *bj = varying ? g.B[0][p] : b;
    vec* sum = varying ? acc[0][p] : s;
    const vec xr = R[j], xi = I[j], lr = LR[j], li = LI[j];
    vec ur, ui;
    if (diagonal) {
      ur = aj[0] * xr - aj[1] * xi, ui = aj[0] * xi + aj[1] * xr;
      LR[j] = aj[0] * lr - aj[1] * li, LI[j] = aj[0] * li + aj[1] * lr;
      sum[0] += lr * ur + li * ui;
      sum[1] += lr * ui - li * ur;
    } else {
      mix(ur, ui, aj, bj, xr, xi, turn(xr, g, true), turn(xi, g, true), kind);
      mix(LR[j], LI[j], aj, bj, lr, li, turn(lr, g, true), turn(li, g, true), kind);
      overlap(sum, lr, li, ur, ui, turn(ur, g, true), turn(ui, g, true), reals);
    }
    R[j] = ur, I[j] = ui;
  }
  if (!varying)
    for (int c = 0; c < 4; c++) acc[0][r.p][c] += s[c];
}

static void reduce(const Op& g, vec (*acc)[2][4], double* grad) {
  double* out = grad + 8 * g.number;  // A0, A1, B0, B1 as (re, im)
  for (int side = 0; side < (g.x ? 2 : 1); side++)
    for (int p = 0; p < 2; p++)
      for (int c = 0; c < 4; c++) {
        double sum[2] = {0, 0};
        for (int l = 0; l < W; l++)
          if (g.lanes[side] >> l & 1) sum[g.lane_parity >> l & 1] += acc[side][p][c][l];
        const int offset = c < 2 ? c : 4 + c - 2;
        out[offset + 2 * p] += sum[0];
        out[offset + 2 * (1 - p)] += sum[1];
      }
}

static void back(const Op& g, vec* R, vec* I, vec* LR, vec* LI, int64_t base, double* grad) {
  if ((base & g.em) != g.ev) return;
  if (!g.active) {
    apply(g, R, I, base);
    apply(g, LR, LI, base);
    return;
  }
  const int pe = par(base & g.ez);
  vec acc[2][2][4] = {};
  Range part[2];
  const int parts = ranges(g, pe, part);
  const Range all = {g.F, g.V, g.count, 0};
#define EACH(CALL, ...)                                                                              \
  if (!parts) CALL(g, R, I, LR, LI, all, pe, acc, __VA_ARGS__ true, kind_, reals_);                  \
  else for (int c_ = 0; c_ < parts; c_++) CALL(g, R, I, LR, LI, part[c_], pe, acc, __VA_ARGS__ false, kind_, reals_)
#define BY_KIND(CALL, ...)                                                                             \
  if (g.real_only && (g.kind == REALS || g.kind == SWAPS)) { enum { kind_ = REALS, reals_ = 1 }; EACH(CALL, __VA_ARGS__); } \
  else if (g.kind == REALS || g.kind == SWAPS) { enum { kind_ = REALS, reals_ = 0 }; EACH(CALL, __VA_ARGS__); } \
  else if (g.kind == ROTX) { enum { kind_ = ROTX, reals_ = 0 }; EACH(CALL, __VA_ARGS__); }             \
  else { enum { kind_ = GENERAL, reals_ = 0 }; EACH(CALL, __VA_ARGS__); }
  if (g.diagonal) {
    enum { kind_ = GENERAL, reals_ = 0 };
    EACH(back_singles, true COMMA);
    for (int p = 0; p < 2; p++) acc[0][p][2] = acc[0][p][0], acc[0][p][3] = acc[0][p][1];
  } else if (g.x == 0) {
    BY_KIND(back_singles, false COMMA)
  } else if (!g.xl) {
    BY_KIND(back_pairs, false COMMA)
  } else {
    BY_KIND(back_pairs, true COMMA)
  }
#undef EACH
#undef BY_KIND
  reduce(g, acc, grad);
}

// -- between interleaved memory and split scratch ----------------------------------------------------------------------------

INLINE void load(const REAL* from, vec* re, vec* im, int64_t amplitudes) {
  if (amplitudes < W) {
    vec r = {}, i = {};
    for (int64_t l = 0; l < amplitudes; l++) r[l] = from[2 * l], i[l] = from[2 * l + 1];
    *re = r, *im = i;
    return;
  }
  ivec even, odd;
  for (int l = 0; l < W; l++) even[l] = 2 * l, odd[l] = 2 * l + 1;
  for (int64_t v = 0; v < amplitudes / W; v++) {
    vec a, b;
    memcpy(&a, from + 2 * v * W, sizeof a);
    memcpy(&b, from + (2 * v + 1) * W, sizeof b);
    re[v] = __builtin_shuffle(a, b, even), im[v] = __builtin_shuffle(a, b, odd);
  }
}

INLINE void store(REAL* to, const vec* re, const vec* im, int64_t amplitudes) {
  if (amplitudes < W) {
    for (int64_t l = 0; l < amplitudes; l++) to[2 * l] = (*re)[l], to[2 * l + 1] = (*im)[l];
    return;
  }
  ivec low, high;
  for (int l = 0; l < W; l++) low[l] = l / 2 + (l & 1) * W, high[l] = W / 2 + l / 2 + (l & 1) * W;
  for (int64_t v = 0; v < amplitudes / W; v++) {
    const vec a = __builtin_shuffle(re[v], im[v], low), b = __builtin_shuffle(re[v], im[v], high);
    memcpy(to + 2 * v * W, &a, sizeof a);
    memcpy(to + (2 * v + 1) * W, &b, sizeof b);
  }
}

static void gather(const Block& b, const cplx* from, int64_t base, vec* R, vec* I, bool conj) {
  const int64_t run = int64_t(1) << b.lo, step = run >= W ? run / W : 1;
  for (size_t r = 0; r < b.row.size(); r++)
    load((const REAL*)(from + base + b.row[r]), R + r * step, I + r * step, run);
  if (conj)
    for (int64_t v = 0; v < b.vectors; v++) I[v] = -I[v];
}

static void scatter(const Block& b, cplx* to, int64_t base, vec* R, vec* I, bool conj) {
  const int64_t run = int64_t(1) << b.lo, step = run >= W ? run / W : 1;
  if (conj)
    for (int64_t v = 0; v < b.vectors; v++) I[v] = -I[v];
  for (size_t r = 0; r < b.row.size(); r++) store((REAL*)(to + base + b.row[r]), R + r * step, I + r * step, run);
}

struct Scratch {
  vec* plane[4];
  char* raw;
  Scratch(int64_t vectors, int planes) {
    raw = (char*)aligned_alloc(64, (size_t)planes * vectors * sizeof(vec) < 64 ? 64 : ((size_t)planes * vectors * sizeof(vec) + 63) / 64 * 64);
    for (int k = 0; k < planes; k++) plane[k] = (vec*)raw + k * vectors;
  }
  ~Scratch() { free(raw); }
};

// -- whole programs ------------------------------------------------------------------------------------------------------------

// The passes of a program with their gates, shaped once and filled with coefficients for each state.
struct Plan {
  std::vector<Block> blocks;
  std::vector<std::vector<Op, Aligned<Op>>> ops;

  Plan(int n, const int64_t* rows, const int64_t* sched, bool backwards) {
    const int64_t passes = sched[0];
    const int64_t* d = sched + 1;
    for (int64_t p = 0; p < passes; p++) {
      blocks.emplace_back(d, n);
      const int64_t* list = d + 1 + blocks.back().nb;
      const int64_t gates = *list++;
      ops.emplace_back(gates);
      for (int64_t k = 0; k < gates; k++) {
        const int64_t g = list[backwards ? gates - 1 - k : k];
        shape(ops.back()[k], rows + 5 * g, g, blocks.back());
      }
      d = list + gates;
    }
  }
  const cplx* loaded = nullptr;

  // States of a batch mostly share a circuit's weights and differ in its data: what is as before is not filled again.
  void load(const cplx* coef, bool dagger) {
    for (auto& list : ops)
      for (Op& g : list)
        if (!loaded || memcmp(coef + 4 * g.number, loaded + 4 * g.number, 4 * sizeof(cplx))) fill(g, coef + 4 * g.number, dagger);
    loaded = coef;
  }
};

// One state: from `in` (or |0...0> when null) to `out`.
static void run_one(const Plan& plan, const cplx* in, cplx* out, bool wide) {
  for (size_t p = 0; p < plan.blocks.size(); p++) {
    const Block& b = plan.blocks[p];
    const auto& ops = plan.ops[p];
    const cplx* from = p ? out : in;
#pragma omp parallel if (wide && b.blocks > 1)
    {
      Scratch s(b.vectors, 2);
#pragma omp for schedule(static)
      for (int64_t block = 0; block < b.blocks; block++) {
        const int64_t base = b.base(block);
        if (from) {
          gather(b, from, base, s.plane[0], s.plane[1], false);
        } else {
          memset(s.raw, 0, 2 * b.vectors * sizeof(vec));
          if (base == 0) s.plane[0][0][0] = 1;
        }
        if (from || base == 0)
          for (const Op& g : ops) apply(g, s.plane[0], s.plane[1], base);
        scatter(b, out, base, s.plane[0], s.plane[1], false);
      }
    }
  }
}

// psi is work space and lam the result; grad gets 8 doubles an instruction.
static void adjoint_one(const Plan& plan, const cplx* final_state, cplx* psi, const cplx* ct, cplx* lam, double* grad, bool wide,
                        int64_t instructions) {
  for (size_t p = plan.blocks.size(); p-- > 0;) {
    const Block& b = plan.blocks[p];
    const auto& ops = plan.ops[p];
    const bool first = p + 1 == plan.blocks.size(), last = p == 0;
    const cplx *psi_from = first ? final_state : psi, *lam_from = first ? ct : lam;
#pragma omp parallel if (wide && b.blocks > 1)
    {
      Scratch s(b.vectors, 4);
      vec** pl = s.plane;
      std::vector<double> mine(b.blocks > 1 ? 8 * instructions : 0, 0.0);
      double* sums = b.blocks > 1 ? mine.data() : grad;
#pragma omp for schedule(static)
      for (int64_t block = 0; block < b.blocks; block++) {
        const int64_t base = b.base(block);
        gather(b, psi_from, base, pl[0], pl[1], false);
        gather(b, lam_from, base, pl[2], pl[3], first);
        for (const Op& g : ops) back(g, pl[0], pl[1], pl[2], pl[3], base, sums);
        if (!last) scatter(b, psi, base, pl[0], pl[1], false);
        scatter(b, lam, base, pl[2], pl[3], last);
      }
      if (b.blocks > 1) {
#pragma omp critical(sciax_gates)
        for (const Op& g : ops)
          for (int c = 0; c < 8; c++) grad[8 * g.number + c] += mine[8 * g.number + c];
      }
    }
  }
}

static void run(const void* in, void* out, const void* coef, int64_t batch, int n, int64_t instructions, const int64_t* rows,
                const int64_t* sched) {
  const int64_t size = int64_t(1) << n;
  const bool many = batch > 1;
#pragma omp parallel if (many)
  {
    Plan plan(n, rows, sched, false);
#pragma omp for schedule(static)
    for (int64_t b = 0; b < batch; b++) {
      plan.load((const cplx*)coef + 4 * instructions * b, false);
      run_one(plan, in ? (const cplx*)in + b * size : nullptr, (cplx*)out + b * size, !many);
    }
  }
}

static void adjoint(const void* final_state, void* work, const void* ct, void* lam, const void* coef, void* dcoef, int64_t batch,
                    int n, int64_t instructions, const int64_t* rows, const int64_t* sched) {
  const int64_t size = int64_t(1) << n;
  const bool many = batch > 1;
#pragma omp parallel if (many)
  {
    Plan plan(n, rows, sched, true);
    std::vector<double> grad(8 * instructions);
#pragma omp for schedule(static)
    for (int64_t b = 0; b < batch; b++) {
      plan.load((const cplx*)coef + 4 * instructions * b, true);
      std::fill(grad.begin(), grad.end(), 0.0);
      adjoint_one(plan, (const cplx*)final_state + b * size, (cplx*)work + b * size, (const cplx*)ct + b * size,
                  (cplx*)lam + b * size, grad.data(), !many, instructions);
      REAL* to = (REAL*)dcoef + 8 * instructions * b;
      for (int64_t k = 0; k < 8 * instructions; k++) to[k] = (REAL)grad[k];
    }
  }
}

// -- Pauli sums: out[i] = sum_k c_k (-i)^{y_k} (-1)^{parity(i & z_k)} psi[i ^ x_k], terms sorted by x ---------------------------

static void pauli_block(const cplx* psi, cplx* out, const vec* signs, const int64_t* terms, int64_t count, int64_t first,
                        int64_t last, int64_t size) {
  const int64_t amplitudes = size < W ? size : W;
  for (int64_t j = first; j < last; j++) {
    vec sr = {}, si = {};
    for (int64_t k = 0; k < count;) {
      const int64_t x = terms[3 * k];
      vec d[2] = {{}, {}};
      for (; k < count && terms[3 * k] == x; k++) {
        const REAL sign = 1 - 2 * par(j & (terms[3 * k + 1] >> LW));
        d[terms[3 * k + 2] & 1] += signs[k] * sign;
      }
      vec r, i;
      load((const REAL*)(psi + (j ^ (x >> LW)) * W), &r, &i, amplitudes);
      const int xl = (int)(x & (W - 1));
      if (xl) {
        ivec m;
        for (int l = 0; l < W; l++) m[l] = l ^ xl;
        r = __builtin_shuffle(r, m), i = __builtin_shuffle(i, m);
      }
      sr += d[0] * r - d[1] * i, si += d[0] * i + d[1] * r;
    }
    store((REAL*)(out + j * W), &sr, &si, amplitudes);
  }
}

static void pauli(const void* psi, void* out, const void* coef, int64_t batch, int n, int64_t count, const int64_t* terms) {
  const int64_t size = int64_t(1) << n, vectors = size > W ? size / W : 1;
  const bool many = batch > 1;
#pragma omp parallel if (batch * vectors > 256)
  {
    std::vector<vec, Aligned<vec>> signs(count);
    int64_t ready = -1;
    const int64_t chunk = many ? vectors : (vectors > 64 ? 64 : vectors), chunks = vectors / chunk;
#pragma omp for schedule(static)
    for (int64_t w = 0; w < batch * chunks; w++) {
      const int64_t b = w / chunks, part = w % chunks;
      if (ready != b) {
        ready = b;
        for (int64_t k = 0; k < count; k++) {
          // (-i)^y: the real or imaginary plane is chosen by y & 1, its sign is here
          const int y = (int)(terms[3 * k + 2] & 3);
          const REAL c = ((const REAL*)coef)[count * b + k] * (y == 1 || y == 2 ? -1 : 1);
          for (int l = 0; l < W; l++) signs[k][l] = par(l & terms[3 * k + 1]) ? -c : c;
        }
      }
      pauli_block((const cplx*)psi + b * size, (cplx*)out + b * size, signs.data(), terms, count, part * chunk,
                  (part + 1) * chunk, size);
    }
  }
}

#undef INLINE
#undef VISIT
#undef COMMA
}  // namespace NS

#undef NS
#undef REAL
#undef INT
#undef VBYTES
