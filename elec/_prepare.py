"""From a scene to what a step multiplies by: coefficients, source patches and their tables. Pure, traceable."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from sciax.core.errors import InputError, UnsupportedError
from sciax.core.ops.yee import Coefficients, Poles, Slab, cpml_profile, pole_coefficients
from sciax.elec._boundaries import PML, Bloch
from sciax.elec._checks import is_traced
from sciax.elec._constants import AXES, C0, COMPONENTS, Z0
from sciax.elec._lattice import Lattice
from sciax.elec._materials import mode_of, survey
from sciax.elec._media import Density
from sciax.elec._scene import Scene
from sciax.elec._sources import Dipole, PlaneWave


class Patch(eqx.Module):
    """Adds profile x table[n] to one component over a box of indices, every step."""

    component: int = eqx.field(static=True)  # 0..2 electric, 3..5 magnetic
    start: tuple[int, int, int] = eqx.field(static=True)
    profile: Array  # includes the update coefficient


class Prepared(eqx.Module):
    """Everything a run needs besides its state. `tables` have a leading axis of steps, one for each patch."""

    coefficients: Coefficients
    patches: tuple[Patch, ...]
    tables: tuple[Array, ...]


def walls(scene: Scene, lat: Lattice, kind: str, component: int) -> np.ndarray:
    """1 where a component may change, 0 where a wall holds it; of broadcastable shape."""
    mask = np.ones((1, 1, 1))
    for a in scene.grid.active_axes:
        if scene.boundaries.wraps(a):
            continue
        low, high = scene.boundaries.faces[a]
        half = (component == a) == (kind == "e")
        line = np.ones(lat.shape[a])
        if kind == "e" and not half and low != "pmc":
            line[0] = 0.0
        if half and high == "pmc":
            line[-1] = 0.0
        if line.min() == 0.0:
            mask = mask * line.reshape([-1 if b == a else 1 for b in range(3)])
    return mask if mask.shape != (1, 1, 1) else mask.reshape(())


def slabs_of(scene: Scene, lat: Lattice) -> tuple[tuple[Slab, ...], list, list]:
    """Absorbing slabs, and the inverse spacings with the stretching kappa in them."""
    dtype = scene.dtype
    inv_e: list[Any] = list(lat.inv_e)
    inv_h: list[Any] = list(lat.inv_h)
    out: list[Slab] = []
    eps, mu = (np.asarray(v, float) for v in (scene.background.permittivity, scene.background.permeability))
    index = float(np.sqrt(np.mean(eps) * np.mean(mu)))
    for a in scene.grid.active_axes:
        inv_e[a], inv_h[a] = inv_e[a].copy(), inv_h[a].copy()
        for side in (0, 1):
            face = scene.boundaries.faces[a][side]
            if not isinstance(face, PML):
                continue
            n, m = lat.shape[a], face.cells
            edges = scene.grid.edges[a]
            start = 0 if side == 0 else n - m
            border = edges[m] if side == 0 else edges[edges.size - 1 - m]
            thickness = abs(border - (edges[0] if side == 0 else edges[-1]))
            sign = -1.0 if side == 0 else 1.0
            cut = slice(start, start + m)
            values = []
            for position, inverse in ((lat.halves[a], inv_e[a]), (lat.nodes[a], inv_h[a])):
                kappa, b, c = cpml_profile(
                    sign * (position[cut] - border),
                    thickness,
                    C0 * scene.dt,
                    spacing=thickness / m,
                    order=face.order,
                    kappa_max=face.kappa_max,
                    sigma_scale=face.sigma_scale,
                    alpha_max=face.alpha_max,
                    index=index,
                )
                plain = inverse[cut].copy()
                inverse[cut] = plain / kappa
                values += [jnp.asarray(b, dtype), jnp.asarray(c * plain, dtype)]
            out.append(Slab(a, start, m, *values))
    return tuple(out), inv_e, inv_h


def _spacing(inverse: Any, dtype):
    if inverse is None:
        return None
    if np.ptp(inverse) <= 1e-9 * inverse.max():
        return jnp.asarray(inverse[0], dtype)
    return jnp.asarray(inverse, dtype)


def coefficients(scene: Scene, static: Scene, lat: Lattice) -> Coefficients:
    """Update coefficients of a scene; `static` is the same scene with concrete numbers, which decides structure only."""
    dtype = jnp.dtype(scene.dtype)
    cdt = C0 * static.dt
    slabs, inv_e, inv_h = slabs_of(static, lat)
    media = [scene.background, *(s.medium for s in scene.structures)]
    ones = (None, None, None)
    electric = [c for c in range(3) if lat.active_e[c]]
    magnetic = [c for c in range(3) if lat.active_h[c]]
    lossy = not all(
        m.lossless or m.perfect_conductor for m in [static.background, *(s.medium for s in static.structures)]
    )
    lossy = lossy or any(not isinstance(m, Density) and not m.lossless and not m.perfect_conductor for m in media)
    mode = mode_of(static)
    ca: list[Any] = list(ones)
    cb: list[Any] = list(ones)
    gain: Any = ones
    off: tuple = ones
    poles: tuple = ()
    plain = not scene.structures and not lossy and np.ndim(scene.background.permittivity) == 0
    if plain:
        for c in electric:
            cb[c] = jnp.asarray(walls(static, lat, "e", c), dtype) * jnp.asarray(
                cdt / scene.background.permittivity, dtype
            )
    else:
        axes = scene.grid.active_axes
        pairs = [
            (a, b) for a, b in ((0, 1), (0, 2), (1, 2)) if a in axes and b in axes and a in electric and b in electric
        ]
        tensor = mode == "tensor" and bool(pairs) and any(not m.perfect_conductor for m in media[1:])
        found = survey(scene, lat, "e", electric + ([3] if tensor else []))
        entries: list = [None, None, None]
        pole_sets = [m.poles for m in media if m.poles]
        flat = [(p, i) for i, group in enumerate(pole_sets) for p in group]
        strengths = [pole_coefficients(*p.terms(), dt=static.dt) for p, _ in flat]
        e_old: list[list[Any]] = [list(ones) for _ in flat]
        e_new: list[list[Any]] = [list(ones) for _ in flat]
        gain = list(ones)
        for row, c in enumerate(electric):
            mean, inverse, n = found.mean[row], found.inverse[row], found.normal[c][row]
            inv = n * n * inverse + (1 - n * n) / mean if mode in ("tensor", "diagonal") else 1.0 / mean
            mask = jnp.asarray(walls(static, lat, "e", c), dtype) * found.free[row]
            if not lossy:
                cb[c] = cdt * inv * mask
                continue
            s = found.sigma[row] * jnp.asarray(Z0 * cdt / 2, dtype)
            extra: Any = 0.0
            for q, ((_, i), (_, _, old, new)) in enumerate(zip(flat, strengths)):
                e_old[q][c] = found.poles[i][row] * jnp.asarray(old, dtype)
                e_new[q][c] = found.poles[i][row] * jnp.asarray(new, dtype)
                extra = extra + e_new[q][c]
            bottom = mean + s + extra
            ca[c] = (mean - s) / bottom * found.free[row]
            cb[c] = cdt / bottom * mask
            gain[c] = mask / bottom
        poles = tuple(
            Poles(jnp.asarray(p, dtype), jnp.asarray(q, dtype), tuple(old), tuple(new))
            for (p, q, _, _), old, new in zip(strengths, e_old, e_new)
        )
        gain = tuple(gain) if poles else ones
        if tensor:
            keep = np.ones((1, 1, 1))
            for a in axes:
                if not static.boundaries.wraps(a):
                    line = np.ones(lat.shape[a])
                    line[0] = 0.0
                    keep = keep * line.reshape([-1 if b == a else 1 for b in range(3)])
            excess = cdt * (found.inverse[-1] - 1.0 / found.mean[-1]) * jnp.asarray(keep, dtype) * found.free[-1]
            for a, b in pairs:
                entries[a + b - 1] = excess * found.normal[a][-1] * found.normal[b][-1]
            off = tuple(entries)
    db: list[Any] = list(ones)
    magnetic_media = any(
        np.any(np.asarray(m.permeability) != 1.0) for m in [static.background, *(s.medium for s in static.structures)]
    )
    if magnetic_media:
        mu = survey(scene, lat, "h", magnetic, "permeability").mean
    for row, c in enumerate(magnetic):
        mask = jnp.asarray(walls(static, lat, "h", c), dtype)
        db[c] = cdt * mask / mu[row] if magnetic_media else jnp.asarray(cdt, dtype) * mask
    wrap = tuple(
        scene.boundaries.phase(a, float(np.ptp(scene.grid.edges[a]))) if scene.grid.edges[a] is not None else None
        for a in range(3)
    )
    return Coefficients(
        ca=tuple(ca) if lossy else ones,
        cb=tuple(cb),
        da=ones,
        db=tuple(db),
        inv_e=tuple(_spacing(v, dtype) for v in inv_e),
        inv_h=tuple(_spacing(v, dtype) for v in inv_h),
        wrap=wrap,
        slabs=slabs,
        offdiagonal=off,
        poles=poles,
        pole_gain=gain,
    )


def gain_at(k: Coefficients, lat: Lattice, component: int, start, size):
    """The update coefficient of a component over a box of indices."""
    g = (k.cb if component < 3 else k.db)[component % 3]
    cut = tuple(slice(s, s + m) if n > 1 else slice(None) for s, m, n in zip(start, size, g.shape)) if g.ndim else ()
    return g[cut] if cut else g


def weights(coordinates: np.ndarray, at: Any, static_at: float, dtype):
    """Index and the two linear weights of a (possibly traced) position among coordinates."""
    if coordinates.size == 1:
        return 0, jnp.ones(1, dtype)
    i = int(np.clip(np.searchsorted(coordinates, static_at, side="right") - 1, 0, coordinates.size - 2))
    # In units of the spacing first: float32 metres lose digits in the difference otherwise.
    u = (at - coordinates[i]) / (coordinates[i + 1] - coordinates[i])
    return i, jnp.stack([jnp.asarray(1.0 - u, dtype), jnp.asarray(u, dtype)])


def dipole_patch(source: Dipole, static: Dipole, lat: Lattice, k: Coefficients, scene: Scene) -> Patch:
    """A point current shared over the 2^d neighbouring points."""
    dtype = jnp.dtype(scene.dtype)
    index = COMPONENTS.index(source.component)
    kind, c = source.component[0], index % 3
    start, profile = [], jnp.ones((), dtype)
    for a in range(3):
        i, w = weights(lat.coordinate(kind, c, a), source.position[a], float(static.position[a]), dtype)
        if scene.grid.edges[a] is not None:
            w = w / jnp.asarray(lat.width(kind, c, a)[i : i + 2], dtype)
        start.append(i)
        profile = profile * w.reshape([-1 if b == a else 1 for b in range(3)])
    factor = -Z0 if index < 3 else -1.0
    profile = profile * jnp.asarray(factor, dtype) * jnp.asarray(source.amplitude, dtype)
    return Patch(index, tuple(start), profile * gain_at(k, lat, index, start, profile.shape))


def _incident(source: PlaneWave, scene: Scene, lat: Lattice, lo: int, hi: int, medium) -> tuple[Array, Array]:
    """March the incident wave along its axis; returns E at nodes and H at half nodes lo-1 .. hi+1, one row a step.

    The line continues the grid with equal cells, long enough that nothing comes back from its ends. Under a Bloch phase across
    it the wave is oblique: H along the line joins in, with the lattice's own transverse wave number.
    """
    dtype = jnp.dtype(scene.dtype)
    a, forward = "xyz".index(source.direction[1]), source.direction[0] == "+"
    b = "xyz".index(source.polarization[1])
    sign = 1.0 if b == (a + 1) % 3 else -1.0
    steps = scene.steps
    edges = scene.grid.edges[a]
    d = np.diff(edges)
    extra = steps // 2 + 8
    d = np.concatenate([np.full(extra, d[0]), d, np.full(extra, d[-1])])
    dual = np.concatenate([[d[0]], 0.5 * (d[1:] + d[:-1])])
    eps, mu = medium.permittivity, medium.permeability
    eps = eps[b] if np.ndim(eps) == 1 else eps
    mu = mu[3 - a - b] if np.ndim(mu) == 1 else mu
    cdt = C0 * scene.dt
    cb, db = jnp.asarray(cdt / (dual * 1.0), dtype) / eps, jnp.asarray(cdt / d, dtype) / mu
    at = extra + (lo - 3 if forward else hi + 3)
    drive = 2 * cdt / (float(dual[at])) / jnp.sqrt(jnp.asarray(eps * mu, dtype))
    signal = jnp.asarray(source.waveform((np.arange(steps) + 0.5) * scene.dt), dtype) * jnp.asarray(
        source.amplitude, dtype
    )
    first, count = extra + lo - 1, hi - lo + 3
    zero = jnp.zeros((), dtype)
    _, across, _ = oblique(source, scene)
    along_e, along_h = (jnp.asarray(cdt * across / v, dtype) for v in (eps, mu))

    def step(carry, s):
        e, h, g = carry
        before = lax.dynamic_slice_in_dim(e, first, count)
        h = h - sign * db * (lax.pad(e, zero, [(-1, 1, 0)]) - e)
        g = g + along_h * e if across else g
        e = e - sign * cb * (h - lax.pad(h, zero, [(1, -1, 0)]))
        e = e - along_e * g if across else e
        e = e.at[at].add(drive * s)
        return (e, h, g), (before, lax.dynamic_slice_in_dim(h, first, count))

    start = (jnp.zeros(d.size, dtype),) * 3
    _, rows = lax.scan(step, start, signal)
    return rows


def oblique(source: PlaneWave, scene: Scene) -> tuple[int | None, float, float]:
    """Transverse axis, wave number of the lattice along it, and Bloch wave number, of a plane wave in a scene.

    Raises:
        UnsupportedError: a Bloch phase along the polarisation, along two axes, or on graded cells.
        InputError: a box that ends inside an axis with a Bloch phase.
    """
    a, b = "xyz".index(source.direction[1]), "xyz".index(source.polarization[1])
    tilted = []
    for t in scene.grid.active_axes:
        face = scene.boundaries.faces[t][0]
        if isinstance(face, Bloch) and (is_traced(face.wavenumber) or float(face.wavenumber) != 0.0):
            tilted.append((t, face.wavenumber))
    if not tilted:
        return None, 0.0, 0.0
    (t, k), *more = tilted
    who = f"source {source.name!r}"
    if is_traced(k):
        raise UnsupportedError(
            f"{who}: derivatives in the Bloch wave number do not reach the incident wave, whose line is prepared beforehand",
            remedy="use dipoles, or central differences of scenes with other wave numbers",
        )
    if more or t in (a, b):
        raise UnsupportedError(
            f"{who}: an oblique plane wave needs one Bloch phase, across its direction and its polarisation",
            got=f"Bloch along {[AXES[q] for q, _ in tilted]}, polarisation {source.polarization!r}",
            remedy="polarise it across the plane of incidence, or use a GaussianBeam with a tilt",
        )
    if source.size[t] is not None:
        raise InputError(f"{who}: its box must span the Bloch axis {AXES[t]}", remedy="size None along that axis")
    steps = scene.grid.steps(t)
    if np.ptp(steps) > 1e-6 * steps.max():
        raise UnsupportedError(f"{who}: an oblique plane wave needs equal cells along {AXES[t]}")
    return t, float(2 * np.sin(k * steps[0] / 2) / steps[0]), float(k)


def total_field_box(source: PlaneWave, scene: Scene, lat: Lattice) -> list:
    """(first, last) node of the box along each axis, None where it spans the axis."""
    box: list = []
    for axis in range(3):
        size = source.size[axis]
        if scene.grid.edges[axis] is None or size is None:
            box.append(None)
            continue
        lo, hi = (int(np.argmin(np.abs(lat.nodes[axis] - (source.center[axis] + s * size / 2)))) for s in (-1, 1))
        if lo < 4 or hi > lat.shape[axis] - 4 or hi - lo < 2:
            raise InputError(
                f"source {source.name!r}: its total-field box leaves no room along {AXES[axis]}",
                got=f"nodes {lo} to {hi} of {lat.shape[axis]}",
                expected="four cells to spare at both ends",
                remedy="make the box smaller, or None along a periodic axis",
            )
        box.append((lo, hi))
    return box


def incident_signals(source: PlaneWave, scene: Scene, lat: Lattice) -> tuple[Any, Any]:
    """Incident E (steps n dt) and Z0 H (steps (n + 1/2) dt, mean of the neighbouring half nodes) where the wave enters its box."""
    a = "xyz".index(source.direction[1])
    lo, hi = total_field_box(source, scene, lat)[a]
    e, h = _incident(source, scene, lat, lo, hi, scene.background)
    i = 1 if source.direction[0] == "+" else hi - lo + 1
    d = scene.grid.steps(a)
    node = lo if source.direction[0] == "+" else hi
    w = d[node] / (d[node - 1] + d[node])
    return e[:, i], w * h[:, i - 1] + (1 - w) * h[:, i]


def plane_wave_patches(source: PlaneWave, static: PlaneWave, lat: Lattice, k: Coefficients, scene: Scene):
    """Corrections on the faces of the total-field box: what a neighbour on the other side does not contain."""
    a = "xyz".index(source.direction[1])
    b = "xyz".index(source.polarization[1])
    c = 3 - a - b
    turned, _, bloch = oblique(static, scene)
    box = total_field_box(static, scene, lat)
    lo, hi = box[a]
    e_rows, h_rows = _incident(source, scene, lat, lo, hi, scene.background)
    at = lambda rows, i: rows[:, i - (lo - 1)]  # noqa: E731

    def span(axis: int, half: bool) -> tuple[int, int]:
        if box[axis] is None:
            return 0, lat.shape[axis]
        return box[axis][0], box[axis][1] + (0 if half else 1)

    patches, tables = [], []

    def add(index: int, axis: int, i: int, factor, table):
        kind, comp = ("e", index) if index < 3 else ("h", index - 3)
        start, size = [], []
        for t in range(3):
            if t == axis:
                s, e = i, i + 1
            else:
                s, e = span(t, (comp == t) == (kind == "e"))
            start.append(s)
            size.append(e - s)
        gain = gain_at(k, lat, index, start, size)
        profile = jnp.asarray(factor, scene.dtype) * jnp.broadcast_to(gain, tuple(size))
        if turned is not None:
            line = lat.coordinate(kind, comp, turned)[start[turned] : start[turned] + size[turned]]
            profile = profile * _lay(jnp.asarray(np.exp(1j * bloch * line))[None], turned)[0]
        patches.append(Patch(index, tuple(start), profile))
        tables.append(table)

    for axis in range(3):
        if box[axis] is None:
            continue
        i0, i1 = box[axis]
        ie, ih = lat.inv_e[axis], lat.inv_h[axis]
        rest = [t for t in range(3) if t != axis]
        if axis != c:  # E_t takes the incident H_c, which is across this face's axis
            t = next(v for v in rest if v != c)
            g = -1.0 if t == (axis + 1) % 3 else 1.0
            if axis == a:
                low, high = at(h_rows, i0 - 1)[:, None, None, None], at(h_rows, i1)[:, None, None, None]
            else:
                s, e = span(a, True)
                low = high = _lay(h_rows[:, s - (lo - 1) : e - (lo - 1)], a)
            if lat.active_e[t]:
                add(t, axis, i0, -g * ih[i0], low)
                add(t, axis, i1, g * ih[i1], high)
        if axis != b:  # H_u takes the incident E_b
            u = next(v for v in rest if v != b)
            g = -1.0 if u == (axis + 1) % 3 else 1.0
            if axis == a:
                low, high = at(e_rows, i0)[:, None, None, None], at(e_rows, i1)[:, None, None, None]
            else:
                s, e = span(a, False)
                low = high = _lay(e_rows[:, s - (lo - 1) : e - (lo - 1)], a)
            if lat.active_h[u]:
                add(3 + u, axis, i0 - 1, g * ie[i0 - 1], low)
                add(3 + u, axis, i1, -g * ie[i1], high)
    return patches, tables


def _lay(rows, axis: int):
    shape = [rows.shape[0], 1, 1, 1]
    shape[axis + 1] = rows.shape[1]
    return rows.reshape(shape)


def prepare(scene: Scene, static: Scene, lat: Lattice) -> Prepared:
    """Coefficients and sources of a scene whose parameters may be traced."""
    k = coefficients(scene, static, lat)
    patches: list[Patch] = []
    tables: list[Array] = []
    times = np.arange(static.steps) * static.dt
    for source, fixed in zip(scene.sources, static.sources):
        if isinstance(source, Dipole):
            patches.append(dipole_patch(source, fixed, lat, k, scene))
            late = 0.5 * static.dt if source.component[0] == "e" else 0.0
            tables.append(jnp.asarray(source.waveform(times + late), scene.dtype).reshape(-1, 1, 1, 1))
        elif isinstance(source, PlaneWave):
            more, rows = plane_wave_patches(source, fixed, lat, k, scene)
            patches += more
            tables += rows
        else:
            more, rows = source.patches(fixed, lat, k, scene, static)
            patches += more
            tables += rows
    dtype = jnp.dtype(scene.dtype)
    # NumPy scalars promote where 64-bit arrays are on; the scene's dtype has the last word.
    cast = lambda v: v.astype(jnp.result_type(dtype, jnp.complex64) if jnp.iscomplexobj(v) else dtype)  # noqa: E731
    return jax.tree.map(lambda v: cast(jnp.asarray(v)), Prepared(k, tuple(patches), tuple(tables)))
