"""The names and units of the canonical form, and every other spelling that is understood.

Canonical names are ECMWF's short ones; CF standard names and units go with them. Each unit is an affine map to SI.
"""

from dataclasses import dataclass

GRAVITY = 9.80665  # m s-2, standard gravity: the WMO's divisor between geopotential and geopotential height


@dataclass(frozen=True)
class Variable:
    """One physical quantity.

    Attributes:
        name: canonical short name.
        standard_name: CF standard name.
        units: SI units of the canonical form.
        aliases: other names it goes by (compared in lower case).
        low, high: values outside are refused as impossible on Earth (wrong units, as a rule).
        accumulated: a total since the start of the forecast: undefined (NaN) at lead time 0.
    """

    name: str
    standard_name: str
    units: str
    aliases: tuple[str, ...] = ()
    low: float = -float("inf")
    high: float = float("inf")
    accumulated: bool = False


VARIABLES: dict[str, Variable] = {
    v.name: v
    for v in (
        Variable(
            "z", "geopotential", "m2 s-2", ("geopotential", "phi", "gh", "geopotential_height", "hgt", "zg"), -2e4, 9e5
        ),
        Variable("t", "air_temperature", "K", ("temperature", "air_temperature", "ta", "tmp", "air"), 120, 360),
        Variable("u", "eastward_wind", "m s-1", ("u_component_of_wind", "ua", "eastward_wind", "ugrd"), -250, 250),
        Variable("v", "northward_wind", "m s-1", ("v_component_of_wind", "va", "northward_wind", "vgrd"), -250, 250),
        Variable("q", "specific_humidity", "kg kg-1", ("specific_humidity", "hus", "spfh"), -1e-3, 0.1),
        Variable("r", "relative_humidity", "1", ("relative_humidity", "hur", "rh"), -0.1, 2.0),
        Variable(
            "w", "lagrangian_tendency_of_air_pressure", "Pa s-1", ("vertical_velocity", "wap", "omega"), -100, 100
        ),
        Variable("vo", "atmosphere_relative_vorticity", "s-1", ("vorticity", "relative_vorticity"), -1e-1, 1e-1),
        Variable("clwc", "cloud_liquid_water_content", "kg kg-1", ("specific_cloud_liquid_water_content",), -1e-6, 0.1),
        Variable("ciwc", "cloud_ice_content", "kg kg-1", ("specific_cloud_ice_water_content",), -1e-6, 0.1),
        Variable("t2m", "air_temperature", "K", ("2m_temperature", "2t", "tas", "t2"), 150, 350),
        Variable("u10", "eastward_wind", "m s-1", ("10m_u_component_of_wind", "10u", "uas"), -150, 150),
        Variable("v10", "northward_wind", "m s-1", ("10m_v_component_of_wind", "10v", "vas"), -150, 150),
        Variable(
            "msl",
            "air_pressure_at_mean_sea_level",
            "Pa",
            ("mean_sea_level_pressure", "psl", "prmsl", "slp"),
            8e4,
            1.15e5,
        ),
        Variable("sp", "surface_air_pressure", "Pa", ("surface_pressure", "ps"), 3e4, 1.15e5),
        Variable("tp", "lwe_thickness_of_precipitation_amount", "m", ("total_precipitation", "apcp"), -1e-3, 10, True),
        Variable("sst", "sea_surface_temperature", "K", ("sea_surface_temperature", "tos"), 250, 320),
        Variable("ci", "sea_ice_area_fraction", "1", ("sea_ice_cover", "siconc"), -0.01, 1.01),
        Variable("lsm", "land_binary_mask", "1", ("land_sea_mask",), -0.01, 1.01),
        Variable("t2m_max", "air_temperature", "K", ("tasmax", "mx2t"), 150, 350),
        Variable("t2m_min", "air_temperature", "K", ("tasmin", "mn2t"), 150, 350),
        Variable("orog", "surface_altitude", "m", ("orography", "topography"), -1000, 9000),
        Variable("h", "fluid_depth", "m", ("depth", "layer_thickness"), 0, 1e5),
    )
}

# Names that carry geopotential height in metres: stored as geopotential.
HEIGHTS = {"gh", "geopotential_height", "hgt", "zg"}

_BY_ALIAS = {a.lower(): v for v in VARIABLES.values() for a in (v.name, *v.aliases)}


def lookup(name: str) -> Variable | None:
    """The quantity a name stands for, or None."""
    return _BY_ALIAS.get(str(name).lower())


# (canonical units, spelling) -> (factor, offset): canonical = factor * value + offset
_SAME = {
    "m2 s-2": ("m**2 s**-2", "m^2 s^-2", "m^2/s^2", "m2/s2", "m2 s**-2", "j kg-1", "j/kg"),
    "K": ("kelvin", "degk", "deg_k", "degrees k"),
    "m s-1": ("m s**-1", "m/s", "meter/second", "m sec-1", "m s^-1"),
    "kg kg-1": ("kg kg**-1", "kg/kg", "1", "(0 - 1)", "kg kg^-1"),
    "1": ("(0 - 1)", "", "fraction", "~", "0-1", "none", "dimensionless"),
    "Pa": ("pascal", "pascals"),
    "Pa s-1": ("pa s**-1", "pa/s"),
    "s-1": ("s**-1", "1/s", "s^-1"),
    "m": ("meter", "meters", "metre", "metres", "m of water equivalent"),
}
_AFFINE = {
    ("K", "degc"): (1.0, 273.15),
    ("K", "c"): (1.0, 273.15),
    ("K", "°c"): (1.0, 273.15),
    ("K", "celsius"): (1.0, 273.15),
    ("K", "degrees_celsius"): (1.0, 273.15),
    ("K", "deg c"): (1.0, 273.15),
    ("K", "celsius_scale"): (1.0, 273.15),
    ("Pa s-1", "mb/day"): (100 / 86400, 0.0),
    ("Pa s-1", "hpa/s"): (100.0, 0.0),
    ("K", "degf"): (5 / 9, 459.67 * 5 / 9),
    ("Pa", "hpa"): (100.0, 0.0),
    ("Pa", "mb"): (100.0, 0.0),
    ("Pa", "mbar"): (100.0, 0.0),
    ("Pa", "millibars"): (100.0, 0.0),
    ("Pa", "kpa"): (1000.0, 0.0),
    ("m2 s-2", "m"): (GRAVITY, 0.0),
    ("m2 s-2", "gpm"): (GRAVITY, 0.0),
    ("m2 s-2", "geopotential metre"): (GRAVITY, 0.0),
    ("m2 s-2", "meters"): (GRAVITY, 0.0),
    ("m2 s-2", "dam"): (10 * GRAVITY, 0.0),
    ("kg kg-1", "g kg-1"): (1e-3, 0.0),
    ("kg kg-1", "g/kg"): (1e-3, 0.0),
    ("1", "%"): (0.01, 0.0),
    ("m", "mm"): (1e-3, 0.0),
    ("m", "kg m-2"): (1e-3, 0.0),  # of water
    ("m", "kg m**-2"): (1e-3, 0.0),
    ("m s-1", "knots"): (1852 / 3600, 0.0),
    ("m s-1", "kt"): (1852 / 3600, 0.0),
    ("m s-1", "km/h"): (1 / 3.6, 0.0),
}


def to_canonical(variable: Variable, units: str) -> tuple[float, float] | None:
    """(factor, offset) from `units` to the variable's own, or None when they are not known to fit."""
    spelling = units.strip()
    if spelling == variable.units or spelling.lower() in _SAME.get(variable.units, ()):
        return 1.0, 0.0
    if spelling.lower() == variable.units.lower():
        return 1.0, 0.0
    return _AFFINE.get((variable.units, spelling.lower()))


def known_units(variable: Variable) -> list[str]:
    """Every spelling understood for a variable."""
    return sorted(
        {variable.units, *_SAME.get(variable.units, ()), *(s for u, s in _AFFINE if u == variable.units)} - {""}
    )


DIMENSIONS: dict[str, tuple[str, ...]] = {
    "init_time": ("forecast_reference_time", "initial_time", "reference_time", "init"),
    "time": ("valid_time", "date", "datetime"),
    "lead_time": ("prediction_timedelta", "step", "leadtime", "lead", "forecast_period"),
    "member": ("number", "ensemble", "realization", "ens", "ensemble_member", "sample"),
    "level": ("lev", "plev", "isobaricinhpa", "isobaricinpa", "isobaric", "pressure_level", "pressure", "lv_isbl"),
    "lat": ("latitude", "nav_lat", "rlat", "g0_lat"),
    "lon": ("longitude", "long", "nav_lon", "rlon", "g0_lon"),
}
ORDER = tuple(DIMENSIONS)
_DIMENSION_OF = {a: name for name, aliases in DIMENSIONS.items() for a in (name, *aliases)}


def dimension(name: str) -> str | None:
    """The canonical dimension a name stands for, or None."""
    return _DIMENSION_OF.get(str(name).lower())
