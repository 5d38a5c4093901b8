#!/usr/bin/env python3
# Writes golden.txt: exact results of the functions of numbers at chosen arguments, computed by mpmath (1.3) with 2,200 bits.
#
#   pip install mpmath && python3 golden.py > golden.txt
#
# A line is the function, its arguments and the nearest double as hexadecimal bits, and by how many thousandths of the last place the
# exact result is above that double. `python3 golden.py coefficients` prints the polynomials of src/math instead: minimax
# approximations by Remez' exchange, each coefficient rounded to a double.
import math
import random
import struct
import sys

import mpmath
from mpmath import mp, mpf

mp.prec = 2200
pick = random.Random(20)


def bits(x):
    return struct.unpack("<Q", struct.pack("<d", x))[0]


def double(b):
    return struct.unpack("<d", struct.pack("<Q", b))[0]


FUNCTIONS = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpf(2) ** x,
    "log": mpmath.log,
    "log2": lambda x: mpmath.log(x) / mpmath.log(2),
    "log10": lambda x: mpmath.log(x) / mpmath.log(10),
    "log1p": lambda x: mpmath.log(1 + x),
    "pow": lambda x, y: x**y,
    "decay": lambda a, b: mpf(2) ** -mpf(float(a) / float(b)),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "tanh": mpmath.tanh,
    "sin": mpmath.sin,
    "cos": mpmath.cos,
}


def around(x, n=2):
    out = [x]
    up = down = x
    for _ in range(n):
        up, down = math.nextafter(up, math.inf), math.nextafter(down, -math.inf)
        out += [up, down]
    return out


def near_quarters():
    """The doubles that are nearest to a multiple of a quarter turn, among those up to a million and among the large ones."""
    unit = int(mpmath.floor(mpmath.pi / 2 * mpf(2) ** 300))
    found = []
    for n in range(1, 636620):
        x = (n * unit) / (1 << 300)
        numerator, denominator = x.as_integer_ratio()
        left = abs(numerator * ((1 << 300) // denominator) - n * unit)
        found.append((left, x))
    found.sort()
    # 6381956970095103 · 2^797 is the nearest of all.
    return [x for _, x in found[:40]] + [6381956970095103.0 * 2.0**797, 5.319372648326541e255, 2.0**120, 1e22]


def arguments(name):
    any_size = [pick.choice([-1, 1]) * 2.0 ** pick.uniform(-1074, 1023) for _ in range(60)]
    small = [pick.uniform(-1, 1) for _ in range(30)] + [pick.choice([-1, 1]) * 2.0 ** pick.uniform(-80, 0) for _ in range(30)]
    least = [5e-324, 1e-320, 2.2250738585072014e-308]
    if name == "exp":
        special = around(709.782712893384) + around(-745.1332191019411) + around(-708.3964185322641) + around(0.34657359027997264)
        return [(x,) for x in small + special + [pick.uniform(-745, 709) for _ in range(100)]]
    if name == "exp2":
        return [(x,) for x in small + around(1023.9999999999999, 1) + [pick.uniform(-1075, 1024) for _ in range(100)]]
    if name in ("log", "log2", "log10"):
        special = around(1.0, 5) + around(math.sqrt(2)) + around(math.sqrt(0.5)) + least + [sys.float_info.max]
        values = [abs(x) for x in any_size] + special + [1 + x / 2 for x in small] + [float(n) for n in range(2, 60)]
        return [(x,) for x in values if x not in (0.0, 1.0)]
    if name == "log1p":
        special = around(-0.2928932188134524) + around(0.41421356237309503) + [sys.float_info.max, 1.6e308, -1 + 2.0**-53]
        return [(x,) for x in [abs(x) for x in any_size] + small + special if x > -1 and x != 0]
    if name == "pow":
        out = []
        for x in [abs(v) for v in any_size[:40]] + [1 + v / 2 for v in small] + [float(n) for n in range(2, 40)] + [10.0] * 30:
            if x in (0.0, 1.0):
                continue
            for size in (pick.uniform(-740, 705), pick.uniform(-30, 30)):
                y = size / math.log(x)
                out += [(x, y), (x, float(round(y)))] if abs(y) < 1e15 else [(x, y)]
        return [(x, y) for x, y in out if y != 0]
    if name == "decay":
        return [(pick.uniform(0, 1000), pick.uniform(1, 50)) for _ in range(60)] + [(pick.uniform(-900, 1070), 1.0) for _ in range(40)]
    if name == "sigmoid":
        return [(x,) for x in small + [pick.uniform(-744, 40) for _ in range(100)] + around(-36.7) + around(-708.4)]
    if name == "tanh":
        return [(x,) for x in small + [pick.uniform(-22, 22) for _ in range(80)] + [x for x in any_size if abs(x) < 20] + around(18.7)]
    angles = near_quarters() if name == "sin" else near_quarters()[:60]
    return [(x,) for x in angles + any_size + small + around(1e6) + [pick.uniform(-1e6, 1e6) for _ in range(60)]]


def line(name, args):
    exact = FUNCTIONS[name](*[mpf(x) for x in args])
    if abs(exact) >= mpf(2) ** 1024 * (1 - mpf(2) ** -54) or exact == 0:
        return None
    exponent = max(mpmath.frexp(exact)[1] - 53, -1074)
    steps = exact / mpf(2) ** exponent
    whole = int(mpmath.nint(steps))
    rounded = math.ldexp(whole, exponent)
    above = int(mpmath.nint((steps - whole) * 1000))
    return " ".join([name, *(format(bits(x), "x") for x in args), format(bits(rounded), "x"), str(above)])


def golden():
    for name in FUNCTIONS:
        seen = set()
        for args in arguments(name):
            text = line(name, args)
            if text and text not in seen:
                seen.add(text)
                print(text)


def fit(f, low, high, degree):
    low, high, count = mpf(low), mpf(high), degree + 2
    points = [(low + high) / 2 - (high - low) / 2 * mpmath.cos(mpmath.pi * i / (count - 1)) for i in range(count)]
    for _ in range(8):
        left, right = mpmath.matrix(count, count), mpmath.matrix(count, 1)
        for i, x in enumerate(points):
            for j in range(degree + 1):
                left[i, j] = x**j
            left[i, count - 1] = (-1) ** i
            right[i] = f(x)
        solved = mpmath.lu_solve(left, right)
        coefficients = [solved[j] for j in range(degree + 1)]
        grid = [low + (high - low) * (1 - mpmath.cos(mpmath.pi * k / 1200)) / 2 for k in range(1201)]
        off = [sum(c * x**j for j, c in enumerate(coefficients)) - f(x) for x in grid]
        peaks = []
        for k in range(1201):
            if not peaks or (off[k] > 0) != (off[peaks[-1]] > 0):
                peaks.append(k)
            elif abs(off[k]) > abs(off[peaks[-1]]):
                peaks[-1] = k
        if len(peaks) != count:
            break
        points = [grid[k] for k in peaks]
    return coefficients, max(abs(x) for x in off)


def coefficients():
    mp.prec = 400
    power = lambda term: lambda x: sum(term(k) * mpf(x) ** k for k in range(90))
    factorial = mpmath.factorial
    root = lambda x: mpmath.sqrt(mpf(x))
    largest = lambda x: ((x - 1) / (x + 1)) ** 2
    for name, f, low, high, degree in [
        ("exponential", power(lambda k: 1 / factorial(k + 3)), -0.3468, 0.3468, 9),
        ("logarithm", power(lambda k: mpf(2) / (2 * k + 3)), 0, largest(root(2)) * mpf("1.0001"), 7),
        ("power", power(lambda k: mpf(3) / (2 * k + 5)), 0, largest(root(1.5)) * mpf("1.0011001"), 6),
        ("sine", power(lambda k: (-1) ** (k + 1) / factorial(2 * k + 3)), 0, (mpmath.pi / 4) ** 2 * mpf("1.001"), 6),
        ("cosine", power(lambda k: (-1) ** k / factorial(2 * k + 4)), 0, (mpmath.pi / 4) ** 2 * mpf("1.001"), 6),
    ]:
        found, off = fit(f, low, high, degree)
        print(name, "to", mpmath.nstr(off, 3), *(repr(float(c)) for c in found))


if __name__ == "__main__":
    coefficients() if sys.argv[1:] == ["coefficients"] else golden()
