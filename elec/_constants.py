"""Physical constants (CODATA 2018; c exact)."""

C0 = 299792458.0
"""Speed of light in vacuum (m/s)."""
EPS0 = 8.8541878128e-12
"""Vacuum permittivity (F/m)."""
MU0 = 1.25663706212e-6
"""Vacuum permeability (H/m)."""
Z0 = MU0 * C0
"""Impedance of free space (ohm)."""
AXES = ("x", "y", "z")
COMPONENTS = ("ex", "ey", "ez", "hx", "hy", "hz")
