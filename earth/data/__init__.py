"""Data of the atmosphere: names, units, the canonical form, checks."""

from sciax.earth.data._canonical import Layout as Layout
from sciax.earth.data._canonical import canonicalise as canonicalise
from sciax.earth.data._channels import Channel as Channel
from sciax.earth.data._channels import channels_of as channels_of
from sciax.earth.data._channels import check_fields as check_fields
from sciax.earth.data._channels import stack as stack
from sciax.earth.data._channels import unstack as unstack
from sciax.earth.data._names import GRAVITY as GRAVITY
from sciax.earth.data._names import VARIABLES as VARIABLES
from sciax.earth.data._names import Variable as Variable
from sciax.earth.data._names import lookup as lookup
from sciax.earth.data._times import day_of_year as day_of_year
from sciax.earth.data._times import hours as hours
from sciax.earth.data._times import time_step as time_step
