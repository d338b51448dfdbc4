"""The body of earth.emulator."""

from typing import TYPE_CHECKING

import numpy as np

from sciax.core.jobs import Outcome, Run

if TYPE_CHECKING:
    from sciax.earth.jobs import EmulatorConfig


def emulator_job(config: "EmulatorConfig", run: Run) -> Outcome:
    """Generate, train, judge on an unseen run against three baselines, save the model."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    from matplotlib.figure import Figure

    from sciax.earth import samples
    from sciax.earth._grid import area_weights
    from sciax.earth.data import Channel
    from sciax.earth.dynamics import gauss_grid
    from sciax.earth.models import AFNO, SFNO, Coords, Training, make_emulator, save_emulator, train_emulator

    data = samples.shallow_water_runs(config.runs, config.days, spin_up_days=config.spin_up_days, seed=run.seed)
    run.note(f"{data.attrs['title']}: skill here is skill at emulating the project's own model.")
    fields = np.stack([data[name].values for name in ("u", "v", "h")], axis=2)  # (run, time, channel, lat, lon)
    train, test = fields[:-1], fields[-1]
    seen_runs = jnp.asarray(train)
    grid = gauss_grid(21)
    coords = Coords(
        tuple(Channel(n) for n in ("u", "v", "h")), tuple(grid.latitude.tolist()), tuple(grid.longitude.tolist()), 12.0
    )
    key, other = jax.random.split(jax.random.key(run.seed))
    shape = {"channels": config.channels, "depth": config.depth, "key": key}
    if config.network == "sfno":
        network = SFNO(3, 3, grid, truncation=21, **shape)
    else:
        network = AFNO(3, 3, (grid.nlat, grid.nlon), patch=4, blocks=4, **shape)
    total = config.train_steps
    stages = ((1, total), (2, max(total // 5, 1)))
    with run.progress("training", total=sum(n for _, n in stages)) as bar:
        seen = 0

        def report(step: int, loss: float) -> None:
            nonlocal seen
            run.metric(step=step, loss=loss)
            bar.advance(step - seen)
            seen = step

        model, history = train_emulator(
            make_emulator(network, seen_runs, coords),
            seen_runs,
            Training(stages, config.batch, config.rate),
            other,
            report,
        )
    path = run.outputs / "emulator.npz"
    save_emulator(model, path)
    run.file(path, caption="weights and normalisation")

    leads = min(10, len(test) - 4)
    starts = np.arange(0, len(test) - leads, 2)
    roll = eqx.filter_jit(
        lambda m, x: jax.lax.scan(lambda s, _: m.step(s, None), m.init(x, None), None, length=leads)[1]
    )
    forecast = np.asarray(roll(model, jnp.asarray(test[starts])))
    climatology, weights = train.mean((0, 1)), area_weights(grid.latitude)[:, None]
    anomaly = train - climatology
    table: dict[str, list[float]] = {
        n: [] for n in (config.network, "persistence", "damped persistence", "climatology")
    }
    for k in range(1, leads + 1):
        truth = test[starts + k]
        rho = (anomaly[:, :-k] * anomaly[:, k:]).sum((0, 1, 3, 4)) / (anomaly[:, :-k] ** 2).sum((0, 1, 3, 4))
        rho = np.clip(rho, 0, 1)
        damped = climatology + rho[:, None, None] * (test[starts] - climatology)
        for name, guess in zip(table, (forecast[k - 1], test[starts], damped, climatology[None])):
            error = ((guess - truth)[:, 0] ** 2 * weights).mean() / weights.mean()
            table[name].append(float(np.sqrt(error)))
            run.metric(model=name, lead_hours=12.0 * k, rmse=table[name][-1])
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(np.arange(1, len(history) + 1) * 20, history)
    left.set(xlabel="optimiser step", ylabel="squared error / squared change")
    for name, values in table.items():
        right.plot(np.arange(1, leads + 1) / 2, values, label=name)
    right.set(xlabel="lead time (days)", ylabel="RMSE of the zonal wind (m/s)", ylim=(0, None))
    right.legend(frameon=False, fontsize=8)
    run.figure(figure, "skill", "Training loss, and errors on an unseen run against the baselines (synthetic data)")
    day = min(2, leads) - 1
    best = min(values[day] for name, values in table.items() if name != config.network)
    value = table[config.network][day]
    return Outcome(
        f"{12 * (day + 1)} h RMSE of u, synthetic flow (m s-1)",
        value,
        best,
        None,
        f"best baseline; skill {100 * (1 - value / best):.0f} %",
    )
