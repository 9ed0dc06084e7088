"""Writes short descriptions of Debian's packages and their sections, as CSV: text,section,part (training or test).

    apt-cache dumpavail | python3 scripts/debian_texts.py texts.csv

They are 420 of each of ten sections, at most one of a source package, so that no description is in both parts in nearly the same words.
"""
import csv
import hashlib
import sys

SECTIONS = ["admin", "devel", "fonts", "games", "java", "net", "science", "sound", "text", "x11"]
EACH, TEST = 420, 84


def packages(lines):
    fields = {}
    for line in lines:
        if line == "\n":
            yield fields
            fields = {}
        elif not line.startswith(" "):
            name, _, value = line.partition(": ")
            fields[name] = value.strip()
    yield fields


def main():
    chosen, seen = {s: {} for s in SECTIONS}, set()
    order = lambda p: hashlib.sha256(p["Package"].encode()).digest()  # the same packages in any order
    for p in sorted((p for p in packages(sys.stdin) if "Package" in p), key=order):
        source, text = p.get("Source", p["Package"]).split(" ")[0], p.get("Description", "")
        if p.get("Section") in chosen and text and source not in seen and text not in chosen[p["Section"]]:
            seen.add(source)
            chosen[p["Section"]][text] = None
    rows = []
    for section, texts in chosen.items():
        if len(texts) < EACH:
            sys.exit(f"debian_texts: {section} has {len(texts)} descriptions, expected at least {EACH}")
        rows += [(text, section, "test" if i < TEST else "training") for i, text in enumerate(list(texts)[:EACH])]
    with open(sys.argv[1], "w", newline="") as f:
        csv.writer(f).writerows([("text", "section", "part"), *rows])


if __name__ == "__main__":
    main()
