#!/usr/bin/env python3
"""Names the code that XLA made in a running process, for perf: finds the functions of the object files that
XLA_FLAGS=--xla_dump_to=DIR wrote in the process's memory, and writes /tmp/perf-PID.map.

    scripts/perf_map.py PID DIR
"""
import glob
import os
import struct
import sys

FUNCTION = 2


def functions(path):
    """Name, code and the places in it that the linker fills in, of each function of an ELF object file."""
    data = open(path, "rb").read()
    if data[:4] != b"\x7fELF" or data[4] != 2:
        return
    table, = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + i * size) for i in range(count)]
    holes = {}
    for s in sections:
        if s[1] == 4:  # relocations, of the section s[7]
            for at in range(s[4], s[4] + s[5], 24):
                offset, info = struct.unpack_from("<QQ", data, at)
                wide = 8 if info & 0xffffffff in (1, 24) else 4
                holes.setdefault(s[7], []).append((offset, wide))
    for s in sections:
        if s[1] != 2:
            continue
        strings = sections[s[6]]
        for at in range(s[4], s[4] + s[5], 24):
            name, info, _, section, value, length = struct.unpack_from("<IBBHQQ", data, at)
            if info & 15 != FUNCTION or not length or section >= count:
                continue
            start = strings[4] + name
            text = data[start:data.index(b"\0", start)].decode()
            code = data[sections[section][4] + value:][:length]
            yield text, code, sorted((o - value, w) for o, w in holes.get(section, []) if value <= o < value + length)


def pieces(code, holes):
    at = 0
    for offset, wide in holes:
        if offset > at:
            yield at, code[at:offset]
        at = max(at, offset + wide)
    if at < len(code):
        yield at, code[at:]


def find(memory, code, holes):
    parts = list(pieces(code, holes))
    if not parts:
        return
    offset, longest = max(parts, key=lambda p: len(p[1]))
    at = memory.find(longest)
    while at >= 0:
        start = at - offset
        if start >= 0 and all(memory[start + o:start + o + len(p)] == p for o, p in parts):
            yield start
        at = memory.find(longest, at + 1)


def main():
    pid, folder = int(sys.argv[1]), sys.argv[2]
    regions = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            f = line.split()
            if "x" in f[1] and (len(f) < 6 or not (f[5].startswith("/") and not "memfd" in f[5] and not "deleted" in f[5]) and not f[5].startswith("[v")):
                low, high = (int(v, 16) for v in f[0].split("-"))
                mem.seek(low)
                try:
                    regions.append((low, mem.read(high - low)))
                except OSError:
                    pass
    found = {}
    total = missed = 0
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.o"), recursive=True)):
        for name, code, holes in functions(path):
            total += 1
            hit = False
            for low, memory in regions:
                for at in find(memory, code, holes):
                    found.setdefault(low + at, (len(code), name))
                    hit = True
            missed += not hit
    with open(f"/tmp/perf-{pid}.map", "w") as out:
        for at, (length, name) in sorted(found.items()):
            out.write(f"{at:x} {length:x} {name}\n")
    print(f"{len(found)} functions in {sum(len(m) for _, m in regions)} bytes of code; {missed} of {total} of the files' are not in memory")


main()
