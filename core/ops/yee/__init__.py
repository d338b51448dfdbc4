"""The Yee lattice: staggered curls, absorbing slabs, dispersive poles, leapfrog steps."""

from sciax.core.ops.yee._cpml import cpml_memory as cpml_memory
from sciax.core.ops.yee._cpml import cpml_profile as cpml_profile
from sciax.core.ops.yee._curl import curl_e as curl_e
from sciax.core.ops.yee._curl import curl_h as curl_h
from sciax.core.ops.yee._farfield import radiate as radiate
from sciax.core.ops.yee._leapfrog import leapfrog as leapfrog
from sciax.core.ops.yee._native import Points as Points
from sciax.core.ops.yee._native import Records as Records
from sciax.core.ops.yee._native import leapfrog_native as leapfrog_native
from sciax.core.ops.yee._native import native_available as native_available
from sciax.core.ops.yee._native import native_refusal as native_refusal
from sciax.core.ops.yee._poles import pole_coefficients as pole_coefficients
from sciax.core.ops.yee._poles import pole_predict as pole_predict
from sciax.core.ops.yee._step import Coefficients as Coefficients
from sciax.core.ops.yee._step import Poles as Poles
from sciax.core.ops.yee._step import Slab as Slab
from sciax.core.ops.yee._step import State as State
from sciax.core.ops.yee._step import advance_e as advance_e
from sciax.core.ops.yee._step import advance_h as advance_h
from sciax.core.ops.yee._step import fence as fence
from sciax.core.ops.yee._step import initial_state as initial_state
from sciax.core.ops.yee._step import retreat_e as retreat_e
from sciax.core.ops.yee._step import retreat_h as retreat_h
from sciax.core.ops.yee._tensor import tensor_offdiagonal as tensor_offdiagonal
