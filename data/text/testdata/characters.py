"""Writes ../characters.txt: what each character is to Hugging Face's tokenizers, whatever Unicode Go has. Made with tokenizers 0.23.3; run in
this folder:

    python characters.py

A line has the first character of a run, in hexadecimal digits, and the run's properties: its general category (to Oniguruma, which matches
the patterns of a file), and letters of
    w word to Oniguruma   W word to Rust's regex   s space   d digit   n numeric (Digits)   p punctuation   c control (BertNormalizer)
    m nonspacing mark (BertNormalizer)   a accent (StripAccents)   e extends the character before (Precompiled)   b begins no grapheme's end
    x breaks graphemes on both sides   H Han   J Hiragana   K Katakana   G Hangul   T Thai   u = upper case, l = lower case to Oniguruma
Lines "L c d…" have the lower case of c where there is another. Lines "N c…" are characters that Unicode 15 normalizes, and tokenizers not.
normal.txt, which is not kept, has what NFD and NFKD make of each character: `go test .. -run TestCharacters -normal FILE` compares it.
"""
import base64
import json
import re
import struct
import sys
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

chars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
every = "".join(chars)
flags = {c: "" for c in chars}


def runs(pattern):
    for text, _ in pre_tokenizers.Split(Regex(f"[^{pattern}]+"), "removed").pre_tokenize_str(every):
        yield from text


category = dict.fromkeys(chars, "Cn")
for gc in "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co".split():
    for c in runs(rf"\p{{{gc}}}"):
        category[c] = gc
for letter, pattern in {"w": r"\w", "s": r"\s", "d": r"\d", "H": r"\p{Han}", "J": r"\p{Hiragana}", "K": r"\p{Katakana}", "G": r"\p{Hangul}", "T": r"\p{Thai}",
                        "u": r"\p{Upper}", "l": r"\p{Lower}"}.items():
    for c in runs(pattern):
        flags[c] += letter

beside = "".join("a" + c + "\n" for c in chars)
for letter, by in {"n": pre_tokenizers.Digits(individual_digits=True), "p": pre_tokenizers.Punctuation("isolated")}.items():
    for text, (begin, end) in by.pre_tokenize_str(beside):
        if end - begin == 1 and begin % 3 == 1:
            flags[text] += letter
for text, _ in pre_tokenizers.Whitespace().pre_tokenize_str(beside):
    if len(text) == 2:
        flags[text[1]] += "W"
spaces = {c for c in chars if not pre_tokenizers.WhitespaceSplit().pre_tokenize_str(c)}
assert spaces == {c for c in chars if "s" in flags[c]}, "Rust and Oniguruma have other spaces"
clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
marks = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
accents, lower = normalizers.StripAccents(), normalizers.Lowercase()
nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
lowered = {}
with open(sys.argv[1] if len(sys.argv) > 1 else "/dev/null", "w") as normal:
    for c in chars:
        if clean.normalize_str(c) == "":
            flags[c] += "c"
        if marks.normalize_str(c) == "":
            flags[c] += "m"
        if accents.normalize_str(c) == "":
            flags[c] += "a"
        if lower.normalize_str(c) != c:
            lowered[c] = lower.normalize_str(c)
        d, k = nfd.normalize_str(c), nfkd.normalize_str(c)
        # the order with marks of the classes 1, 9, 202, 220, 230 and 240 gives the character's class
        order = "".join("01"[nfd.normalize_str("a" + m + c) != "a" + m + d] for m in "\u0334\u3099\u0327\u0316\u0301\u0345") if d == c else ""
        if d != c or k != c or "1" in order:
            print(f"{ord(c):x}", *(".".join(f"{ord(x):x}" for x in y) for y in (d, k)), order or "-", file=normal)


def charsmap(sources):
    """A Precompiled that makes X of each source, as a double array in which each node has a block of 256 units."""
    trie = {}
    for s in sources:
        node = trie
        for b in s.encode():
            node = node.setdefault(b, {})
        node[0] = True
    units = {}
    blocks = [0]

    def place(node, at):  # the unit at `at` points to a block of its own
        base = 0x400 * (len(blocks))
        blocks.append(base)
        offset = at ^ base
        units[at] = units.get(at, 0) | (offset >> 8 << 10 | 1 << 9 if offset >= 1 << 21 else offset << 10) | (0x100 if 0 in node else 0)
        for b, child in node.items():
            if b == 0:
                units[base] = 1 << 31
            else:
                units[base ^ b] = b
                place(child, base ^ b)

    place(trie, 0)
    size = max(units) + 256
    array = [0xFF] * size
    for at, unit in units.items():
        array[at] = unit
    blob = struct.pack("<I", 4 * size) + struct.pack(f"<{size}I", *array) + b"X\0"
    t = Tokenizer(models.BPE())
    spec = json.loads(t.to_str())
    spec["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()}
    return Tokenizer.from_str(json.dumps(spec)).normalizer


# Z becomes X, and with it what belongs to the same grapheme.
z = charsmap(["Z"])
for c in chars:
    if z.normalize_str("Z" + c) == "X":
        flags[c] += "e"
# A character before Z that makes one grapheme with it: its own mapping takes Z with it.
candidates = [c for c in chars if len(c.encode()) < 5 and category[c] in ("Cf", "Lo", "Mn", "Mc", "So") and "G" not in flags[c] and "H" not in flags[c]]
for i in range(0, len(candidates), 500):
    part = candidates[i:i + 500]
    m = charsmap(part)
    for c in part:
        if m.normalize_str(c + "Z") == "X":
            flags[c] += "b"
# A mark after a control character makes a grapheme of its own.
controls = [c for c in chars if category[c] in ("Cc", "Cf", "Zl", "Zp", "Cn") and "e" not in flags[c] and "b" not in flags[c]]
controls = [c for c in controls if category[c] != "Cn" or 0xE0000 <= ord(c) < 0xE1000 or ord(c) < 0x3000 or 0xFFF0 <= ord(c) < 0x10000]
for i in range(0, len(controls), 500):
    part = controls[i:i + 500]
    m = charsmap(part)
    for c in part:
        if m.normalize_str(c + "\u0301") == "X\u0301":
            flags[c] += "x"

with open("../characters.txt", "w") as f:
    last = None
    for c in chars:
        now = category[c] + "".join(sorted(flags[c]))
        if now != last or ord(c) == 0xE000:
            print(f"{ord(c):x} {now}", file=f)
            last = now
    for c, to in lowered.items():
        print("L", *(f"{ord(x):x}" for x in c + to), file=f)
