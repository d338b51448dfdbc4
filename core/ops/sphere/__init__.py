"""Spherical-harmonic transforms and spectral calculus on the sphere."""

from sciax.core.ops.sphere._calculus import cos_d_dlat as cos_d_dlat
from sciax.core.ops.sphere._calculus import cos_d_dlat_weak as cos_d_dlat_weak
from sciax.core.ops.sphere._calculus import curl_divergence as curl_divergence
from sciax.core.ops.sphere._calculus import d_dlon as d_dlon
from sciax.core.ops.sphere._calculus import inverse_laplacian as inverse_laplacian
from sciax.core.ops.sphere._calculus import laplacian as laplacian
from sciax.core.ops.sphere._calculus import truncate as truncate
from sciax.core.ops.sphere._calculus import vector_analysis as vector_analysis
from sciax.core.ops.sphere._calculus import vector_synthesis as vector_synthesis
from sciax.core.ops.sphere._calculus import wind_over_radius as wind_over_radius
from sciax.core.ops.sphere._grids import SphereGrid as SphereGrid
from sciax.core.ops.sphere._grids import gauss_nodes as gauss_nodes
from sciax.core.ops.sphere._tables import SphereTables as SphereTables
from sciax.core.ops.sphere._tables import legendre as legendre
from sciax.core.ops.sphere._tables import sphere_tables as sphere_tables
from sciax.core.ops.sphere._transform import analysis as analysis
from sciax.core.ops.sphere._transform import synthesis as synthesis
