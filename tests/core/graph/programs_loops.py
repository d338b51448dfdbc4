"""Programs with loops, for the table-driven test of graph mode."""

# ruff: noqa: B023, B007

import itertools

import jax
import jax.numpy as jnp
from table import program

A = jnp.arange(6.0) - 2.5
M = jnp.arange(12.0).reshape(3, 4) / 7


@program((30,), (1,), grad=False)
def collatz(n):
    c = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        c += 1
    return c


@program((10.0,), (0.5,), max_steps=16)
def while_simple(x):
    while x > 1:
        x = x / 2
    return x


@program((10.0,), max_steps=16)
def while_true_break(x):
    i = 0
    while True:
        x = x / 2
        i += 1
        if x < 1:
            break
    return x + i


@program((10.0,), max_steps=16)
def while_true_return(x):
    while True:
        x = x / 3
        if x < 1:
            return x * 2


@program((10,), (0,), grad=False)
def while_continue(n):
    s = 0
    i = 0
    while i < n:
        i += 1
        if i % 3 == 0:
            continue
        s += i
    return s


@program((4,), (20,), grad=False)
def while_else(n):
    r = 0
    i = 0
    while i < n:
        if i == 10:
            break
        i += 1
    else:
        r = 100
    return r + i


@program((4,), grad=False)
def while_else_without_break(n):
    i = 0
    while i < n:
        i += 2
    else:
        i = i + 50
    return i


@program((8.0,), (0.5,), max_steps=20)
def while_with_and(x):
    i = 0
    while x > 1 and i < 2:
        x = x / 2
        i += 1
    return x * i


@program((9.0,), max_steps=20)
def while_walrus(x):
    s = 0.0
    while (y := x / 2) > 1:
        s = s + y
        x = y
    return s


@program((2.0,), (30.0,), max_steps=40)
def newton(a):
    x = a
    err = 1.0
    while err > 1e-6:
        xn = 0.5 * (x + a / x)
        err = abs(xn - x)
        x = xn
    return x


@program((5.0,), max_steps=10)
def loop_local(x):
    while x > 0:
        t = x * 2
        x = x - t / 4 - 0.3
    return x


@program((5.0,), max_steps=10)
def two_variables(x):
    a, b = x, 1.0
    while a > b:
        a, b = a - 1, b + 0.5
    return a * b


@program((10.0,), max_steps=20)
def return_inside_while(x):
    while x > 1:
        x = x / 2
        if x < 3:
            return x * 100
    return x


@program((7, 1.5), (0, 1.5), max_steps=10)
def for_traced_range(n, x):
    s = 0.0
    for i in range(n):
        s = s + i * x
    return s


@program((7,), (1,), grad=False)
def for_range_three(n):
    s = 0
    for i in range(1, n, 2):
        s += i
    return s


@program((7,), (2,), grad=False)
def for_range_down(n):
    s = 0
    for i in range(n, 0, -2):
        s = s * 2 + i
    return s


@program((A, 0.4), (A, 99.0))
def for_return(a, t):
    for v in a:
        if v > t:
            return v * 2
    return -1.0 * t


@program((A,))
def for_array(a):
    s = 0.0
    for v in a:
        s = s * 0.9 + v
    return s


@program((M,))
def for_rows(m):
    s = jnp.zeros(4)
    for row in m:
        s = s * 0.5 + row
    return s.sum()


@program((A,))
def for_break_static_range(a):
    s = 0.0
    for i in range(6):
        if a[i] > 0.6:
            break
        s = s + a[i]
    return s


@program((jnp.arange(20.0) / 10,))
def for_break_long_range(a):
    s = 0.0
    for i in range(20):
        if a[i] > 0.65:
            break
        s = s + a[i] * a[i]
    return s


@program((A,))
def for_break_over_list(a):
    s = 0.0
    for name, w in [("a", 1.0), ("b", 2.0), ("c", 3.0)]:
        if s > 0:
            break
        s = s + w + a[0] * len(name)
    return s


@program((A,))
def for_continue(a):
    s = 0.0
    for v in a:
        if v < 0:
            continue
        s = s + v * v
    return s


@program((A,), (A * 10,))
def for_else(a):
    s = 0.0
    for v in a:
        s = s + v
        if v > 10:
            break
    else:
        s = s + 100.0
    return s


@program((A, 0.5), (A, 50.0))
def for_else_return(a, t):
    for v in a:
        if v > t:
            return v
    else:
        t = t * 2
    return t


@program((5, 4), grad=False)
def nested_loops(n, m):
    s = 0
    for i in range(n):
        for j in range(m):
            if j > i:
                break
            if (i + j) % 2:
                continue
            s += i * j + 1
    return s


@program((3, 1.2), max_steps=10)
def nested_for_while(n, x):
    s = 0.0
    for i in range(n):
        y = x
        while y < 3 + i:
            y = y * 1.7
        s = s + y
    return s


@program((M,))
def nested_arrays(m):
    s = 0.0
    for row in m:
        t = 0.0
        for v in row:
            t = t + v * v
        s = s + t**0.5
    return s


@program((3, 2.0), max_steps=10)
def triple_nest(n, x):
    s = 0.0
    for i in range(n):
        for j in range(i + 1):
            for k in range(j + 1):
                if (i + j + k) % 2 == 0:
                    s = s + x * (i + 1) / (k + 1)
    return s


@program((5,), grad=False)
def nonlocal_in_traced_loop(n):
    total = 0

    def add(v):
        nonlocal total
        if v % 2 == 0:
            total = total + v
        else:
            total = total - v

    for i in range(n):
        add(i)
    return total


@program((5, 2.0), max_steps=8)
def nonlocal_counter_and_value(n, x):
    count = 0
    acc = 0.0

    def visit(v):
        nonlocal count, acc
        count += 1
        acc = acc + v * x

    for i in range(n):
        visit(i)
    return acc * count


@program((5,), grad=False)
def int_becomes_float(n):
    s = 0
    for _ in range(n):
        s = s + 0.5
    return s


@program((3, 2.0), max_steps=5)
def int_becomes_array_dtype(n, x):
    s = 1
    for _ in range(n):
        s = s * x
    return s


@program((A,))
def enumerate_array(a):
    s = 0.0
    for i, v in enumerate(a):
        s = s + i * v
    return s


@program((A,))
def enumerate_start(a):
    s = 0.0
    for i, v in enumerate(a, 1):
        s = s + v / i
    return s


@program((A,))
def zip_arrays(a):
    s = 0.0
    for u, v in zip(a, a[::-1]):
        s = s + u * v
    return s


@program((A,))
def enumerate_zip(a):
    s = 0.0
    for i, (u, v) in enumerate(zip(a, a * 2)):
        s = s + i * u * v
    return s


@program((A,))
def reversed_array(a):
    s = 0.0
    for v in reversed(a):
        s = s * 0.5 + v
    return s


@program((A,))
def zip_array_and_list(a):
    s = 0.0
    for w, v in zip([1.0, 2.0, 3.0], a):
        s = s + w * v
    return s


@program((A,))
def set_item_static(a):
    for i in range(3):
        a[i] = a[i] * 2
    return a.sum() + a[0] * a[1]


@program((5, 2.0), max_steps=8)
def set_item_traced(n, x):
    a = jnp.zeros(8)
    for i in range(n):
        a[i] = i * x
    return a


@program((A,))
def set_item_augmented(a):
    a[0] += 3.0
    a[1:3] *= 2.0
    a[-1] -= a[0]
    return a


@program((M,))
def set_item_two_dimensional(m):
    m[0, 1] = 5.0
    m[1, :] = m[2]
    m[:, 3] += 1.0
    return m


@program((A,))
def set_item_swap(a):
    a[0], a[1] = a[1], a[0]
    return a * jnp.arange(6.0)


@program((A,))
def set_item_in_branch(a):
    if a[0] < 0:
        a[0] = 10.0 * a[1]
    else:
        a[1] = 20.0
    return a


@program((A,))
def set_item_nested_in_dict(a):
    d = {"v": a, "n": [1.0, 2.0]}
    d["v"][2] = 7.0
    d["n"][0] = a[0]
    return d["v"].sum() + d["n"][0] + d["n"][1]


@program((A,))
def set_item_in_inner_function(a):
    def fill(k):
        a[k] = a[k] * k

    for k in range(3):
        fill(k)
    return a


@program((A,))
def bubble_pass(a):
    for i in range(5):
        if a[i] < a[i + 1]:
            a[i], a[i + 1] = a[i + 1], a[i]
    return a


@program((jnp.array([3, 1, 2, 5, 4]),), grad=False)
def bubble_sort(a):
    n = a.shape[0]
    for i in jnp.arange(n):
        for j in jnp.arange(n - 1):
            if a[j] > a[j + 1]:
                a[j], a[j + 1] = a[j + 1], a[j]
    return a


@program((A,))
def list_append(a):
    items = []
    for i in range(3):
        items.append(a[i] * 2)
    return jnp.stack(items)


@program((A,))
def list_extend_and_pop(a):
    items = [a[0]]
    items.extend([a[1], a[2]])
    last = items.pop()
    items.insert(0, last)
    return jnp.stack(items)


@program((4, 1.0), max_steps=6)
def dict_carry(n, x):
    st = {"a": 0.0, "b": jnp.ones(2) * x}
    for i in range(n):
        st = {"a": st["a"] + i, "b": st["b"] * 2}
    return st["a"] + st["b"].sum()


@program((4, 1.0), max_steps=6)
def dict_changed_in_loop(n, x):
    st = {"a": 0.0, "b": x}
    alias = st
    for i in range(n):
        st["a"] = st["a"] + i * x
        st["b"] *= 1.5
    return alias["a"] + alias["b"]


@program((4, 1.0), max_steps=6)
def list_items_in_loop(n, x):
    pair = [x, 2 * x]
    for _ in range(n):
        pair[0], pair[1] = pair[1], pair[0] + pair[1]
    return pair[0]


@program((4, 1.0), max_steps=6)
def tuple_carry(n, x):
    state = (x, jnp.zeros(3))
    for i in range(n):
        v, w = state
        state = (v * 1.1, w + v * i)
    return state[0] + state[1].sum()


@program((4, 1.0), max_steps=6)
def temporary_list_in_loop(n, x):
    s = 0.0
    for i in range(n):
        parts = []
        parts.append(x * i)
        parts.append(x + i)
        s = s + sum(parts)
    return s


@program((4,), grad=False)
def recursion_static(n):
    def fac(k):
        if k <= 1:
            return 1
        return k * fac(k - 1)

    return fac(4) + n


def power(x, n):
    if n == 0:
        return 1.0
    half = power(x, n // 2)
    if n % 2:
        return half * half * x
    return half * half


@program((1.3,))
def recursion_by_python_number(x):
    return power(x, 5)


@program((4, 2.0), max_steps=8)
def loop_variable_after_loop(n, x):
    for i in range(n):
        x = x * 0.5
    return x * i


@program((4, 2.0), max_steps=8)
def variable_made_in_loop(n, x):
    for i in range(n):
        y = x * i
    return y


@program((3, 2.0), max_steps=8)
def same_variable_two_loops(n, x):
    for i in range(n):
        x = x + i
    for i in range(n):
        x = x * 1.1
    return x


@program((2.0,))
def python_while(x):
    i = 0
    while i < 4:
        x = x * 1.5 + i
        i += 1
    return x


@program((2.0,))
def python_while_break_static(x):
    i = 0
    while True:
        x = x * 1.5
        i += 1
        if i == 3:
            break
    return x


@program((A,))
def scan_with_break_in_scan(a):
    s = 0.0
    for v in a:
        if s > 0.5:
            break
        s = s + abs(v)
    return s


@program((A,))
def while_over_index(a):
    i = 0
    s = 0.0
    while i < 6:
        s = s + a[i] * i
        i = i + 1
    return s


@program((A, 4), max_steps=8)
def prefix_sum_until(a, n):
    total = 0.0
    for i in range(n):
        total = total + a[i]
        if total < -4:
            total = total + 1.0
    return total


@program((12,), (7,), grad=False)
def is_prime(n):
    d = 2
    while d * d <= n:
        if n % d == 0:
            return False
        d += 1
    return True


@program((48, 18), grad=False)
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@program((10,), grad=False)
def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program((2.0,), max_steps=64)
def bisection(c):
    lo, hi = 0.0, c
    while hi - lo > 1e-4:
        mid = (lo + hi) / 2
        if mid * mid < c:
            lo = mid
        else:
            hi = mid
    return lo + 0.0 * c


@program((jnp.array([1.0, 2.0]),), max_steps=40)
def fixed_point(v):
    x = jnp.zeros(2)
    r = 1.0
    while r > 1e-5:
        y = 0.5 * jnp.cos(x) + 0.1 * v
        r = jnp.abs(y - x).max()
        x = y
    return x


@program((jnp.array([4.0, 1.0, 3.0]),))
def power_iteration(v):
    m = jnp.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    for _ in jnp.arange(5):
        w = m @ v
        v = w / jnp.sqrt((w * w).sum())
    return v @ m @ v


@program((1.0, 6), max_steps=8)
def euler_steps(x, n):
    v = 0.0
    for _ in range(n):
        a = -x if x > 0 else -2 * x
        v = v + 0.1 * a
        x = x + 0.1 * v
    return x


@program((1.0,), max_steps=100)
def adaptive_step(x):
    t, h = 0.0, 0.3
    while t < 1.0:
        h = min(h, 1.0 - t)
        full = x + h * -x
        half = x + h / 2 * -x
        two = half + h / 2 * -half
        err = abs(two - full)
        if err < 0.01:
            t = t + h
            x = two
            h = h * 1.2
        else:
            h = h * 0.5
    return x


def _halvings(a):
    n = jnp.array([3, 2, 1, 1, 2, 3])  # of 2.5, 1.5, 0.5
    return jnp.abs(a) / 2.0**n * n


@program((A,), max_steps=8, instead=_halvings)
def vmap_of_loop(a):
    def halve(v):
        n = 0
        v = abs(v)
        while v > 0.4:
            v = v / 2
            n = n + 1
        return v * n

    return jax.vmap(halve)(a)


@program((3.0,), max_steps=10)
def call_in_condition(x):
    def far(v):
        return v > 1

    while far(x):
        x = x / 2
    return x


@program((A,))
def itertools_static(a):
    s = 0.0
    for i, j in itertools.product(range(2), range(3)):
        s = s + a[i] * a[j]
    return s


@program((3.0,))
def closures_see_the_last_value(x):
    fs = []
    for i in range(3):
        fs.append(lambda v: v * i)
    return fs[0](x) + fs[1](x)


@program((3, 2.0), (0, 2.0), max_steps=5)
def closure_used_within_the_loop(n, x):
    for i in range(n):
        x = x + jax.vmap(lambda v: v * i)(jnp.ones(2) * x).sum()
    return x


@program((A,))
def dict_items_static(a):
    weights = {"x": 0, "y": 3}
    s = 0.0
    for k, v in weights.items():
        s = s + a[v] * len(k)
    return s


@program((2.0, "double"), static=("mode",))
def string_argument(x, mode):
    if mode == "double":
        return 2 * x
    return x


@program((2.0, 4), static=("n",))
def static_integer(x, n):
    v = jnp.ones(n) * x
    for i in range(n):
        v = v + i
    return v.sum()


@program((4, 3.0), max_steps=6)
def function_chosen_before_loop(n, x):
    f = jnp.sin if n is not None else jnp.cos
    for _ in range(n):
        x = f(x)
    return x


@program((6,), grad=False)
def break_with_flag(n):
    found = False
    i = 0
    for k in range(n):
        if k * k > 10:
            found = True
            i = k
            break
    if found:
        return i
    return -1


@program((5.0,), max_steps=20)
def assertion_in_loop(x):
    while x > 1:
        assert x < 100
        x = x / 2
    return x


@program((5.0,), max_steps=20)
def raise_in_loop_not_reached(x):
    while x > 1:
        if x > 100:
            raise OverflowError("too large")
        x = x / 2
    return x


@program((4, 1.0), max_steps=6)
def object_state_in_loop(n, x):
    class_like = Counter(x)
    for _ in range(n):
        class_like.total = class_like.total * 2
    return class_like.total


class Counter:
    def __init__(self, total):
        self.total = total


@program((A,))
def empty_array_loop(a):
    s = 1.0
    for v in a[:0]:
        s = s + v
    return s + a.sum()


@program((A,))
def numpy_style_mean(a):
    total = 0.0
    count = 0
    for v in a:
        if v > 0:
            total += v
            count += 1
    return total / count
