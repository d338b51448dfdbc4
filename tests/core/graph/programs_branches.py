"""Programs with branches, for the table-driven test of graph mode. Each is run compiled and line by line."""

# ruff: noqa: E731

import functools
import math

import jax
import jax.numpy as jnp
from table import program

A = jnp.arange(6.0) - 2.5


@program((2.0,), (-2.0,))
def if_else(x):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


@program((2.0,), (-1.0,))
def if_without_else(x):
    y = x
    if x > 0:
        y = x * 3
    return y


@program((-3.0,), (0.5,), (5.0,))
def elif_chain(x):
    if x < 0:
        r = 0.0 * x
    elif x < 1:
        r = x
    elif x < 3:
        r = x**2
    else:
        r = x**3
    return r


@program((-3.0,), (3.0,), (1.0,))
def early_return(x):
    if x < 0:
        return -x
    x = x * 2
    if x > 5:
        return x - 1
    return x


@program((-3.0,), (3.0,), (-1.0,))
def nested_return(x):
    if x < 0:
        if x < -2:
            return x * 10
        x = x + 1
    return x


@program((3.0,), (-3.0,))
def return_tuple(x):
    if x > 0:
        return x, x * 2
    return -x, x * 3


@program((3.0,), (-3.0,))
def return_dict(x):
    if x > 0:
        return {"a": x, "b": jnp.ones(2) * x}
    else:
        return {"a": -x, "b": jnp.zeros(2)}


@program((3.0,), (-3.0,))
def several_variables(x):
    a, b, c = x, 2 * x, 1.0
    if x > 1:
        a, b = b, a
    else:
        c = a * b
    return a + 2 * b + 3 * c


@program((3.0,), (-3.0,))
def ternary(x):
    return x if x > 0 else 0.0


@program((3.0,), (-3.0,), (0.2,))
def nested_ternary(x):
    return x if x > 1 else (x * x if x > 0 else -x)


@program((0.5,), (2.0,), (-1.0,))
def boolean_operators(x):
    if x > 0 and not (x > 1 or x == 0.25):
        return x * 1.0
    return x * 0.0


@program((0.5,), (2.0,))
def chained_comparison(x):
    if 0 < x < 1:
        return x
    return x * x


@program((0.5,), (2.0,), (-2.0,))
def three_conditions(x):
    if -1 < x and x < 1 and x != 0:
        y = x
    else:
        y = 2 * x
    return y


@program((0.5,), (2.0,))
def not_operator(x):
    small = x < 1
    if not small:
        x = x * 5
    return x


@program((2,), (3,), grad=False)
def int_condition(n):
    if n % 2:
        return n * 3 + 1
    return n // 2


@program((2,), (0,), grad=False)
def truthy_number(n):
    if n:
        return 10 // n
    return -1


@program((jnp.array([2.0]),))
def size_one_condition(x):
    if x > 1:
        return x * 2
    return x


@program((2.0,), (-2.0,))
def int_and_float_branches(x):
    if x > 0:
        y = 1
    else:
        y = 0.5
    return y * x


@program((2.0,), (-2.0,))
def temporary_on_one_side(x):
    if x > 0:
        t = x * 2
        y = t + 1
    else:
        y = x
    return y


@program((2.0,), (-2.0,))
def static_condition_inside(x):
    scale = 3
    if scale > 2:
        if x > 0:
            x = x * scale
    return x


@program((2.0, True), (2.0, False))
def boolean_argument(x, flag):
    if flag:
        return x * 2
    return x


@program((2.0,), (-2.0,))
def nonscalar_branch_values(x):
    if x > 0:
        v = jnp.array([1.0, 2.0]) * x
    else:
        v = jnp.zeros(2)
    return v.sum()


@program((2.0,), (-2.0,))
def dict_in_branch(x):
    state = {"a": x, "n": 0}
    if x > 0:
        state["a"] = state["a"] * 2
        state["n"] = 1
    return state["a"] + state["n"]


@program((2.0,), (-2.0,))
def alias_sees_change(x):
    state = {"a": x}
    alias = state
    if x > 0:
        state["a"] = x * 5
    return alias["a"]


@program((2.0,), (-2.0,))
def rebinding_leaves_alias(x):
    state = {"a": x}
    alias = state
    if x > 0:
        state = {"a": x * 5}
    return alias["a"] + 10 * state["a"]


@program((2.0,), (-2.0,))
def list_rebound_in_branch(x):
    items = [x, x]
    if x > 0:
        items = [items[0] * 2, items[1]]
    return items[0] + items[1]


@program((2.0,), (-2.0,))
def tuple_swap(x):
    a, b = x, 1.0
    if a > b:
        a, b = b, a
    return a - 3 * b


def helper(x):
    if x > 1:
        return x / 2
    return x * 3


@program((17.0,), (0.5,))
def calls_helper(x):
    return helper(x) + helper(x + 1)


def with_default(x, scale=2.0, *, shift=1.0):
    if x > 0:
        return x * scale + shift
    return x


@program((3.0,), (-3.0,))
def helper_with_defaults(x):
    return with_default(x) + with_default(x, 3.0, shift=0.5)


@program((3.0,), (-3.0,))
def inner_function(x):
    k = 2.0

    def g(y):
        if y > 0:
            return y * k
        return y - k

    return g(x) + g(-x)


@program((3.0,), (-3.0,))
def inner_with_nonlocal(x):
    total = 0.0

    def add(v):
        nonlocal total
        if v > 0:
            total = total + v
        else:
            total = total - 2 * v

    add(x)
    add(-x)
    return total


@program((3.0,), (-3.0,))
def nonlocal_in_traced_branch(x):
    total = 1.0

    def add(v):
        nonlocal total
        total = total + v

    if x > 0:
        add(x)
    return total


class Machine:
    def __init__(self, w):
        self.w = w

    def act(self, x):
        if x > 0:
            return x * self.w
        return x * 0.1

    def __call__(self, x):
        return self.act(x) + self.act(-x)

    @staticmethod
    def square(x):
        if x > 1:
            return x * x
        return x

    @property
    def double(self):
        return self.w * 2


machine = Machine(3.0)


@program((2.0,), (-2.0,))
def method_call(x):
    return machine(x) + machine.act(x)


@program((2.0,), (0.5,))
def static_method(x):
    return Machine.square(x) * machine.double


class Base:
    def rate(self, x):
        if x > 0:
            return x
        return 0.0 * x


class Child(Base):
    def rate(self, x):
        return super().rate(x) + 1.0

    def run(self, x):
        return self.rate(x) * self.__scale(x)

    def __scale(self, x):
        return 2.0 if x > 1 else 3.0


child = Child()


@program((2.0,), (-2.0,))
def inheritance(x):
    return child.run(x)


@program((2.0,), (-2.0,))
def local_object(x):
    m = Machine(2.0)
    m.w = x
    return m.w * 2


@program((2.0,), (-2.0,))
def attribute_in_branch(x):
    m = Machine(2.0)
    if x > 0:
        m.w = x * 3
    return m.w


@program((2.0,), (-2.0,))
def partial_application(x):
    f = functools.partial(with_default, scale=4.0)
    return f(x)


@program((2.0,), (-2.0,))
def lambda_inside(x):
    f = lambda v: v * 2 if v > 0 else v
    return f(x)


@program((2.0,), (-2.0,))
def grad_inside(x):
    def f(y):
        if y > 0:
            return y**3
        return y

    return jax.grad(f)(x)


@program((A,), instead=lambda a: jnp.where(a > 1, a / 2, a * 3))
def vmap_inside(a):
    return jax.vmap(helper)(a)


@program((A,), instead=lambda a: jnp.where(a > 1, a / 2, a * 3) + 1)
def vmap_of_lambda(a):
    return jax.vmap(lambda v: helper(v) + 1)(a)


@program((2.0,), (-2.0,))
def jvp_inside(x):
    return jax.jvp(helper, (x,), (1.0,))[1]


@program((A,))
def comprehension(a):
    return sum([v if v > 0 else 0.0 for v in [a[0], a[5], a[3]]])


@program((A,))
def comprehension_over_array(a):
    return sum([v * v for v in a])


@program((A,))
def dict_comprehension(a):
    d = {k: a[k] if a[k] > 0 else -a[k] for k in range(3)}
    return d[0] + 2 * d[1] + 3 * d[2]


@program((5.0,), (0.5,))
def try_static(x):
    try:
        y = x / 2
    except ZeroDivisionError:
        y = 0.0
    if y > 1:
        y = 1.0 * x
    return y


@program((5.0,))
def try_catches_static_error(x):
    try:
        [][1]
    except IndexError:
        x = x * 2
    else:
        x = x * 3
    finally:
        x = x + 1
    return x


@program((5.0,), (0.5,))
def with_static(x):
    with jax.named_scope("a"):
        if x > 1:
            x = x + 1
    return x


@program((5.0,), (0.5,))
def max_min_builtin(x):
    return max(x, 1.0) + min(x, 2.0, 3 * x)


@program((A,))
def any_all_builtin(a):
    flags = [a[0] > 0, a[5] > 0]
    if any(flags) and not all(flags):
        return a.sum() * 2
    return a.sum()


@program((5.7,), (-0.5,))
def int_builtin(x):
    return int(x) + float(int(x)) * 0.5


@program((2.0,), (0.5,))
def walrus_in_if(x):
    if (y := x * 2) > 2:
        return y
    return y + x


@program((1,), (2,), (7,), grad=False)
def match_values(n):
    match n:
        case 1:
            r = 10
        case 2 | 3:
            r = 20
        case _:
            r = 30
    return r


@program((1.0,), (2.0,))
def match_with_guard(x):
    kind = "b"
    match kind:
        case "a":
            return x
        case "b" if x > 1.5:
            return x * 2
        case _:
            return x * 3


@program((3.0,), (-3.0,))
def augmented_assignment(x):
    y = x
    if x > 0:
        y += 2
        y *= x
    y -= 1
    return y


@program((3.0,), (-3.0,))
def math_constant(x):
    if x > 0:
        return x * math.pi
    return x / math.e


@program((3.0,), (-3.0,))
def assertion_holds(x):
    assert x > -10, f"too small: {x}"
    if x > 0:
        assert x > 1
        x = x * 2
    return x


@program((3.0,), (1.0,))
def raise_not_reached(x):
    if x < 0:
        raise ValueError("negative")
    elif x > 2:
        y = jnp.sqrt(x)
    else:
        y = x
    return y


@program((3.0,), (-3.0,))
def docstring_and_annotations(x: float) -> float:
    """A docstring: not code."""
    y: float = 2.0
    if x > 0:
        y = y * x
    return y


@program((3.0, 4.0), (-3.0, 4.0))
def two_arguments(x, y):
    if x > 0 and y > 0:
        return x * y
    elif y > 0:
        return y
    return x


@program((3.0,), (-3.0,))
def starred_arguments(*values):
    (x,) = values
    if x > 0:
        return x
    return 2 * x


@program((3.0,), (-3.0,))
def keyword_forwarding(x):
    def call(f, *args, **kwargs):
        return f(*args, **kwargs)

    return call(with_default, x, shift=2.0)


@program((3.0,), (-3.0,))
def delete_variable(x):
    t = x * 2
    y = t + 1
    del t
    if x > 0:
        t = 1.0
        y = y + t
    return y


@program((3.0,), (-3.0,))
def implicit_none_everywhere(x):
    def nothing(v):
        if v > 0:
            v = v + 1

    r = nothing(x)
    return x if r is None else 2 * x


@program((jnp.array([1.0 + 2.0j]),), grad=False)
def complex_values(z):
    if jnp.abs(z[0]) > 1:
        return z * 2
    return z


@program((3.0,), (-3.0,))
def none_default(x, y=None):
    if y is None:
        y = 2.0
    if x > 0:
        return x * y
    return x


@program((3.0,), (-3.0,))
def branch_calls_jnp_where(x):
    if x > 0:
        v = jnp.where(jnp.arange(3) > 1, x, 0.0)
    else:
        v = jnp.ones(3) * x
    return v.sum()


@program((3.0,), (-3.0,))
def custom_jvp_function(x):
    @jax.custom_jvp
    def f(v):
        return v * v

    f.defjvps(lambda t, ans, v: 7.0 * t)
    if x > 0:
        return f(x)
    return x


@program((3.0,), (-3.0,))
def linear_algebra_in_branch(x):
    m = jnp.eye(2) * jnp.abs(x)
    if x > 0:
        r = jnp.linalg.solve(m, jnp.ones(2))
    else:
        r = m @ jnp.ones(2)
    return r.sum()
