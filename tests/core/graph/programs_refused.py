"""Programs that graph mode must refuse, each with the line, the variable and a way out."""

# ruff: noqa: B007

import jax.numpy as jnp
from table import refused

A = jnp.arange(6.0) - 2.5
LOG: list = []
TOTAL = 0.0
CACHE: dict = {}


class Holder:
    def __init__(self):
        self.count = 0
        self.items: list = []


HOLDER = Holder()


@refused(3, words=("calls itself", "loop"), line=4)
def recursion_with_traced_depth(n):
    def fib(k):
        if k < 2:
            return k
        return fib(k - 1) + fib(k - 2)

    return fib(n)


@refused(2.0, words=("LOG", "once"), line=1)
def append_to_global(x):
    LOG.append(x)
    return x


@refused(2.0, words=("CACHE", "once"), line=1)
def store_into_global(x):
    CACHE["x"] = x
    return x


@refused(2.0, words=("global TOTAL",), line=1)
def rebind_global(x):
    global TOTAL
    TOTAL = x
    return x


@refused(2.0, words=("HOLDER.count", "once"), line=1)
def attribute_of_global(x):
    HOLDER.count = x
    return x


@refused(2.0, words=("HOLDER.count", "once"), line=1)
def augmented_attribute_of_global(x):
    HOLDER.count += 1
    return x


@refused(2.0, words=("list.append", "once"), line=1)
def append_to_attribute(x):
    HOLDER.items.append(x)
    return x


@refused(2.0, words=("dict.update", "once"), line=1)
def update_global(x):
    CACHE.update(a=x)
    return x


@refused(A, words=("'items'", "structure"), line=5)
def append_in_traced_branch(a):
    items = [a[0]]
    if a[0] > 0:
        a = a * 2
        items.append(a[1])
    return items[-1]


@refused(5, words=("list.extend", "once"), line=3)
def extend_in_traced_loop(n):
    items = []
    for i in range(n):
        items.extend([i])
    return len(items)


@refused(2.0, words=("'y'", "only on the if side"), line=3)
def one_sided_variable(x):
    if x > 0:
        y = x
    return y + 1


@refused(2.0, words=("return different things", "None"), line=1)
def none_against_value(x):
    if x > 0:
        return x
    else:
        return None


@refused(2.0, words=("return different things", "float32[2]", "float32[3]"), line=1)
def shapes_differ(x):
    if x > 0:
        return jnp.zeros(2)
    return jnp.zeros(3)


@refused(2.0, words=("'v'", "float32[2]", "float32[3]"), line=5)
def variable_shapes_differ(x):
    if x > 0:
        v = jnp.zeros(2)
    else:
        v = jnp.zeros(3)
    return v.sum()


@refused(5, words=("'a'", "shape", "float32[1]", "float32[2]"), line=2)
def growing_array(n):
    a = jnp.zeros(1)
    for i in range(n):
        a = jnp.concatenate([a, jnp.zeros(1)])
    return a


@refused(5, words=("'s'", "str"), line=2)
def string_changes_in_loop(n):
    s = ""
    for i in range(n):
        s = s + "x"
    return n


@refused(5, words=("'t'", "structure"), line=2)
def tuple_grows(n):
    t = (0.0,)
    for i in range(n):
        t = (*t, 1.0)
    return t[0]


@refused(2.0, words=("'name'", "cannot be chosen"), line=5)
def string_chosen(x):
    if x > 0:
        name = "a"
    else:
        name = "b"
    return x * len(name)


@refused(A, words=("one truth value", "(6,)", "jnp.where"), line=1)
def array_condition(a):
    if a > 0:
        return a
    return -a


@refused(2.0, words=("known at run time",), line=1)
def shape_from_value(n):
    return jnp.zeros(int(n))


@refused(A, words=("not converted",), line=1)
def comprehension_condition(a):
    return sum([v for v in a if v > 0])


@refused(2.0, words=("sorted",), line=1)
def sorting(x):
    return sorted([x, 1.0])[0]


@refused(2.0, words=("generator",), line=-1)
def generator(x):
    for i in range(3):
        yield x * i


@refused(2.0, words=("assignment expression",), line=1)
def walrus_elsewhere(x):
    y = [z := x, z * 2]
    return y[0]


@refused(2.0, words=("class 'Local'",), line=1)
def class_inside(x):
    class Local:
        pass

    return x


@refused(2, words=("items[...]", "list", "index is traced"), line=2)
def list_indexed_by_traced(n):
    items = [1.0, 2.0, 3.0]
    items[n] = 5.0
    return items[0]


@refused(2.0, words=("match",), line=2)
def match_structure(x):
    match (x, 1.0):
        case (a, b):
            return a + b


@refused(2.0, words=("inside a `try`",), line=3)
def raise_in_try(x):
    try:
        if x > 0:
            raise ValueError("positive")
    except ValueError:
        x = -x
    return x


@refused({"a": 1.0}, words=("changes a list or dict that it was given", "copy"), line=-1)
def mutated_argument(d):
    d["a"] = d["a"] * 2
    return d["a"]


@refused(2.0, words=("`or`",), line=1)
def or_default(x):
    return x or 1.0


@refused(2.0, words=("range", "for"), line=1)
def list_of_traced_range(x):
    return list(range(int(x)))


@refused(2.0, words=("returns", "function"), line=-1)
def returns_function(x):
    def g(y):
        return x + y

    return g


@refused(2.0, words=("only known at run time", "bound"), line=1)
def unbounded_reverse(x):
    while x > 1:
        x = x / 2
    return x
