"""CRPS of a 10-member ensemble on a 1.5 degree grid against xskillscore: equality and speed.

python benchmarks/earth_crps.py
"""

import importlib.util
import time

import numpy as np
import xarray as xr

from sciax.earth import verify


def best(function, repeats=3):
    value = function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        value = function()
        times.append(time.perf_counter() - begin)
    return min(times) * 1e3, value


def main():
    rng = np.random.default_rng(0)
    coords = {"lat": np.linspace(-90, 90, 121), "lon": np.arange(240) * 1.5}
    for dtype in (np.float32, np.float64):
        o = xr.DataArray(rng.standard_normal((20, 121, 240)).astype(dtype), dims=("time", "lat", "lon"), coords=coords)
        f = xr.DataArray(
            rng.standard_normal((20, 10, 121, 240)).astype(dtype), dims=("time", "member", "lat", "lon"), coords=coords
        )
        mine, a = best(lambda f=f, o=o: verify.crps(f, o, fair=False))
        line = f"{np.dtype(dtype).name}: sciax {mine:.0f} ms"
        if importlib.util.find_spec("xskillscore"):
            import xskillscore

            peer, b = best(lambda f=f, o=o: xskillscore.crps_ensemble(o, f, member_dim="member", dim=[]))
            line += f" | xskillscore {peer:.0f} ms, speed-up {peer / mine:.1f}, largest difference {float(abs(a - b).max()):.1e}"
        else:
            line += " | xskillscore is not installed"
        print(line, flush=True)


if __name__ == "__main__":
    main()
