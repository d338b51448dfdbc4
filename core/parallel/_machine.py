"""What a machine can do, in the few numbers that choosing a placement needs."""

from dataclasses import dataclass

from sciax.core.errors import InputError


@dataclass(frozen=True)
class Machine:
    """A device and its links.

    Attributes:
        flops: floating-point operations a second of one device, as sustained, not as printed on the box.
        link: bytes a second between two devices.
        latency: seconds a collective takes whatever it moves.
        memory: bytes of one device.
        reduce_scatter: whether XLA has a reduce-scatter there; on CPU it does an all-reduce and throws the rest away.
    """

    name: str
    flops: float
    link: float
    latency: float
    memory: float
    reduce_scatter: bool = True

    def __post_init__(self) -> None:
        for name in ("flops", "link", "latency", "memory"):
            if not getattr(self, name) > 0:
                raise InputError(f"machine profile: {name} is a positive number", got=getattr(self, name))

    def transfer(self, kind: str, size: float, devices: int) -> float:
        """Seconds of one collective over a ring of `devices`.

        An all-reduce of s bytes moves 2 s (n-1)/n over each link, all-gather and reduce-scatter s (n-1)/n of the whole array,
        an all-to-all s (n-1)/n of the part s, a permutation s (Thakur, Rabenseifner & Gropp 2005). `size` is that of the result
        on one device.
        """
        n = max(devices, 1)
        if n == 1:
            return 0.0
        factor = {
            "all-reduce": 2 * (n - 1) / n,
            "all-gather": (n - 1) / n,
            "reduce-scatter": float(n - 1),  # its result is the part, 1/n of what is moved
            "all-to-all": (n - 1) / n,  # each device keeps one part of its own
            "collective-permute": 1.0,
        }[kind]
        return self.latency + factor * size / self.link


CPU_CORE = Machine("one CPU core", flops=2e10, link=5e9, latency=2e-5, memory=8e9, reduce_scatter=False)
"""A core with AVX2 in float32, and memory as its link to a neighbour. Order of magnitude."""

H100 = Machine("H100 SXM, NVLink", flops=4e14, link=3e11, latency=1e-5, memory=8e10)
"""bfloat16 at 40 % of the 989 TFLOP/s and links at 2/3 of the 450 GB/s of NVIDIA's H100 data sheet (2023)."""
