"""Numbers for a person."""


def prefixed(count: float, unit: str = "") -> str:
    """`count` with a decimal prefix: 950 "FLOP" -> "950 FLOP", 7700 "B" -> "7.7 kB", 2e6 "" -> "2 M"."""
    scaled, prefix = count, ""
    for larger in "kMGT":
        if abs(scaled) < 999.5:
            break
        scaled, prefix = scaled / 1000, larger
    return f"{scaled:.3g} {prefix}{unit}".rstrip()
