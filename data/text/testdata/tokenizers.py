"""Makes tokenizers of each common kind, and writes what Hugging Face's tokenizers and Google's sentencepiece do with texts. Made with
tokenizers 0.23.3 and sentencepiece 0.2.3; run in this folder:

    python tokenizers.py               # kinds.json.gz and texts.json.gz of the tests
    python tokenizers.py FOLDER NUMBER # the same kinds with sentencepiece's whole normalization, and NUMBER texts, for TestPeers_many

The texts are real ones (this repository's documents and sources) and random ones. A record of a text has its ids, types, offsets in
characters, its ids with another text and without added tokens, and the decoded text; texts.json.gz has the first records in full, and
the SHA-256 of each group of records.
"""
import gzip
import hashlib
import io
import json
import pathlib
import random
import sys
import tempfile

sys.path = [p for p in sys.path if p not in ("", str(pathlib.Path(__file__).parent))]  # this file has the library's name
import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

many = len(sys.argv) > 2
root = pathlib.Path(__file__).resolve().parents[3]
paths = sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("loop/*.go"), *root.glob("data/*.go")])
lines = [line for p in paths for line in p.read_text(encoding="utf8").split("\n") if line.strip()]
foreign = ["Größe und Straße: Äpfel für 12,50 €.", "L'été, où êtes-vous né? Ça va – très bien…", "Все счастливые семьи похожи друг на друга.", "すべての人間は、生まれながらにして自由である。",
           "人人生而自由，在尊严和权利上一律平等。", "모든 인간은 태어날 때부터 자유로우며", "जन्म से सभी मनुष्य स्वतंत्र हैं", "يولد جميع الناس أحرارًا متساوين", "เราทุกคนเกิดมาอย่างอิสระ",
           "I'll say: don't, can't, we've THEY'RE it's 'tis ＡＢＣ ｶﾞｷﾞ ﬁne №5 ½", "😀 👩‍👩‍👧‍👦 🇩🇪 ❤️ ✈️ 👍🏽", "İstanbul'da ILIK ǅ Σίσυφος ẞ ŉ", "a\u0301e\u0323\u0302 q\u0307\u0323 각 Å"]
random.seed(5)
train = random.sample(lines, 1500) + foreign * 3

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = "|".join([r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
DEEPSEEK = r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
level = pre_tokenizers.ByteLevel(add_prefix_space=False)
kinds = {}


class Kind:
    """A tokenizer under construction: the parts are set before it learns."""

    def __init__(self, name, model, normalizer=None, pre=None, post=None, decoder=None, size=700, tokens=(), alphabet=True, after=None, **options):
        t = Tokenizer(model)
        if normalizer:
            t.normalizer = normalizer
        if pre:
            t.pre_tokenizer = pre
        t.train_from_iterator(train, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=list(tokens), limit_alphabet=300,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [], **options))
        if decoder:
            t.decoder = decoder
        spec = json.loads(t.to_str())
        if after:
            after(spec)
        t = Tokenizer.from_str(json.dumps(spec))
        if post:
            t.post_processor = post(t)
        kinds[name] = t


def template(bos, eos=None, pair=True):
    def make(t):
        of = [(x, t.token_to_id(x)) for x in (bos, eos) if x]
        end = f" {eos}" if eos else ""
        return processors.TemplateProcessing(single=f"{bos} $A{end}", pair=f"{bos} $A{end} $B:1" + (f" {eos}:1" if eos else ""), special_tokens=of)
    return make


def names_of(normalizer, pre, size=500):
    t = Tokenizer(models.BPE())
    t.normalizer, t.pre_tokenizer = normalizer, pre
    t.train_from_iterator(train, trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=250))
    return [n for n, _ in sorted(t.get_vocab().items(), key=lambda item: item[1])]


# The words of a BPE, for WordPieceTrainer chooses among equal pairs by chance.
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
for name, lower, accents, longest in (("bert", True, None, 100), ("bert-cased", False, None, 9), ("bert-accents", True, False, 100)):
    normalizer, pre = normalizers.BertNormalizer(lowercase=lower, strip_accents=accents), pre_tokenizers.BertPreTokenizer()
    words = names_of(normalizer, pre)
    t = Tokenizer(models.WordPiece({n: i for i, n in enumerate(BERT + words + ["##" + n for n in words])}, unk_token="[UNK]", max_input_chars_per_word=longest))
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, pre, decoders.WordPiece(cleanup=lower)
    t.add_special_tokens(BERT)
    if name == "bert-cased":
        t.add_tokens([AddedToken("loop", single_word=True), AddedToken("Straße", normalized=True), AddedToken("été", normalized=False, rstrip=True)])
        t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    else:
        t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
        if name == "bert-accents":
            t.add_tokens([AddedToken("Été", normalized=True), AddedToken("THE batch", normalized=True, lstrip=True)])
    kinds[name] = t

Kind("gpt2", models.BPE(), pre=level, decoder=decoders.ByteLevel(), tokens=["<|endoftext|>"], post=lambda t: processors.ByteLevel(trim_offsets=False))


def roberta(spec):
    spec["added_tokens"][-1].update(lstrip=True)


Kind("roberta", models.BPE(), pre=pre_tokenizers.ByteLevel(add_prefix_space=True), decoder=decoders.ByteLevel(), tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
     after=roberta, post=lambda t: processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))


def byte_split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


Kind("llama3", models.BPE(ignore_merges=True), pre=byte_split(LLAMA3), decoder=decoders.ByteLevel(), tokens=["<|begin_of_text|>", "<|eot_id|>"],
     post=lambda t: processors.Sequence([processors.ByteLevel(trim_offsets=True), template("<|begin_of_text|>")(t)]))
Kind("qwen2", models.BPE(), normalizer=normalizers.NFC(), pre=byte_split(QWEN2), decoder=decoders.ByteLevel(), tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
     post=lambda t: processors.ByteLevel(trim_offsets=False))
Kind("smollm", models.BPE(), pre=pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), level]), decoder=decoders.ByteLevel(), tokens=["<|endoftext|>"])
Kind("o200k", models.BPE(), pre=byte_split(O200K), decoder=decoders.ByteLevel(), tokens=["<|endoftext|>"], size=500)
Kind("deepseek", models.BPE(), pre=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(r"\p{N}{1,3}"), "isolated"), pre_tokenizers.Split(Regex("[一-龥\u3040-ゟ゠-ヿ]+"), "isolated"),
     pre_tokenizers.Split(Regex(DEEPSEEK), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]), decoder=decoders.ByteLevel(), size=500)
Kind("bloom", models.BPE(), pre=byte_split(BLOOM), decoder=decoders.ByteLevel(), size=500)
Kind("falcon", models.BPE(), pre=pre_tokenizers.Sequence([pre_tokenizers.Punctuation("contiguous"), level, pre_tokenizers.Digits(individual_digits=False),
     pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]), decoder=decoders.ByteLevel(), size=500)
Kind("bytes-normalized", models.BPE(), normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.ByteLevel()]), decoder=decoders.ByteLevel(), size=400,
     tokens=["<|end|>"])


def fallback(spec):
    model = spec["model"]
    first = len(spec["added_tokens"])
    for name in model["vocab"]:
        if model["vocab"][name] >= first:
            model["vocab"][name] += 256
    for i in range(256):
        model["vocab"][f"<0x{i:02X}>"] = first + i
    model.update(byte_fallback=True, fuse_unk=True, unk_token="<unk>")


LLAMA2 = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
Kind("llama2", models.BPE(), normalizer=normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), decoder=LLAMA2,
     pre=pre_tokenizers.Split("▁", "merged_with_next"), tokens=["<unk>", "<s>", "</s>"], alphabet=False, after=lambda s: (fallback(s), s.update(pre_tokenizer=None)), post=template("<s>"))
Kind("mistral", models.BPE(), pre=pre_tokenizers.Metaspace(prepend_scheme="first", split=True), decoder=LLAMA2, tokens=["<unk>", "<s>", "</s>", "[INST]"], alphabet=False,
     after=lambda s: (fallback(s), s["pre_tokenizer"].update(split=False)), post=template("<s>", "</s>"))
Kind("gemma", models.BPE(), normalizer=normalizers.Replace(" ", "▁"), pre=pre_tokenizers.Split("▁", "merged_with_previous"),
     decoder=decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]), tokens=["<pad>", "<eos>", "<bos>", "<unk>"], alphabet=False, after=fallback, post=template("<bos>"))


def clip(spec):
    spec["model"].update(unk_token="<|endoftext|>")


Kind("clip", models.BPE(end_of_word_suffix="</w>"), normalizer=normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]),
     pre=pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(CLIP), "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]), decoder=decoders.ByteLevel(),
     tokens=["<|startoftext|>", "<|endoftext|>"], end_of_word_suffix="</w>", after=clip, post=lambda t: processors.RobertaProcessing(("<|endoftext|>", 1), ("<|startoftext|>", 0), trim_offsets=False, add_prefix_space=False))
Kind("prefix", models.BPE(unk_token="[UNK]", continuing_subword_prefix="##"), normalizer=normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Strip()]),
     pre=pre_tokenizers.Whitespace(), decoder=decoders.WordPiece(), tokens=["[UNK]"], alphabet=False, continuing_subword_prefix="##", size=500)
Kind("suffix", models.BPE(unk_token="[UNK]", fuse_unk=True, end_of_word_suffix="</w>"), normalizer=normalizers.Sequence([normalizers.NFKD(), normalizers.Nmt()]), alphabet=False,
     pre=pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation("merged_with_previous")]), decoder=decoders.BPEDecoder(), tokens=["[UNK]"], end_of_word_suffix="</w>", size=500)

rules = io.StringIO()
for a, b in {**{chr(0xFF01 + i): chr(0x21 + i) for i in range(94)}, "\u3000": " ", "\u00a0": " ", "\t": " ", "\n": " ", "\u200b": " ", "e\u0301": "é", "a\u0301": "á", "ｶﾞ": "ガ", "ｶ": "カ",
             "ﬁ": "fi", "№": "No", "½": "1⁄2", "…": "...", "İ": "i\u0307", "\u0085": "", "\u00ad": "", "o\u0302\u0323": "ộ", "™": "TM", "\u00aa": "a", "\ufdfa": "صلى الله"}.items():
    print(" ".join(f"{ord(c):X}" for c in a), " ".join(f"{ord(c):X}" for c in b), sep="\t", file=rules)
rules_file = tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf8")
rules_file.write(rules.getvalue())
rules_file.flush()


def sentence_piece(name, **options):
    out = io.BytesIO()
    normal = dict(normalization_rule_name=options.pop("rule")) if "rule" in options else \
        dict(normalization_rule_name="nmt_nfkc") if many else dict(normalization_rule_tsv=rules_file.name)
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(train), model_writer=out, minloglevel=2, vocab_size=options.pop("size", 600), character_coverage=0.98,
                                             hard_vocab_limit=False, **normal, **options)
    return out.getvalue()


pieces = {
    "spm-bpe": sentence_piece("spm-bpe", model_type="bpe", byte_fallback=True, add_dummy_prefix=False, rule="identity", remove_extra_whitespaces=False, user_defined_symbols=["<start>", "  "], size=900),
    "spm-bpe-mapped": sentence_piece("spm-bpe-mapped", model_type="bpe"),
    "spm-unigram": sentence_piece("spm-unigram", model_type="unigram", user_defined_symbols=["<start>", "loop takes"]),
    "spm-unigram-bytes": sentence_piece("spm-unigram-bytes", model_type="unigram", byte_fallback=True, treat_whitespace_as_suffix=True, size=900),
}


def proto(model):
    from sentencepiece import sentencepiece_model_pb2 as pb
    m = pb.ModelProto()
    m.ParseFromString(model)
    return m


def unigram(name, model, unknown, special, normalizer, pre, decoder, post, byte_fallback=False):
    m = proto(pieces[model])
    vocab = [(x, 0.0) for x in special] + [(p.piece, p.score) for p in m.pieces if p.type in (1, 6)]
    t = Tokenizer(models.Unigram(vocab, unk_id=special.index(unknown), byte_fallback=byte_fallback))
    t.pre_tokenizer, t.decoder = pre, decoder
    t.add_special_tokens([AddedToken(x, normalized=False, special=True) for x in special])
    t.normalizer = normalizer(normalizers.Precompiled(m.normalizer_spec.precompiled_charsmap))
    t.post_processor = post(t)
    kinds[name] = t


unigram("xlm-r", "spm-unigram", "<unk>", ["<s>", "<pad>", "</s>", "<unk>"], lambda p: normalizers.Sequence([p, normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Metaspace(prepend_scheme="always"), decoders.Metaspace(prepend_scheme="always"), template("<s>", "</s>"))
unigram("t5", "spm-unigram", "<unk>", ["<pad>", "</s>", "<unk>"], lambda p: p, pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
        decoders.Metaspace(), lambda t: processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]))
unigram("albert", "spm-unigram", "<unk>", ["<pad>", "<unk>", "[CLS]", "[SEP]"],
        lambda p: normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), p]),
        pre_tokenizers.Metaspace(), decoders.Metaspace(), template("[CLS]", "[SEP]"))
unigram("unigram-bytes", "spm-unigram-bytes", "<unk>", ["<unk>"], lambda p: normalizers.Sequence([normalizers.Strip(right=False), normalizers.Replace(" ", "▁")]), None,
        LLAMA2, lambda t: None, byte_fallback=True)

t = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["[UNK]", "the", "a", "loop", "of", "batch", ",", ".", "12", "1", "été", "is", "-", "(", ")"])}, unk_token="[UNK]"))
t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Strip(left=False)])
t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(), pre_tokenizers.Punctuation("merged_with_next"),
                                           pre_tokenizers.Split("loop", "merged_with_previous"), pre_tokenizers.Split(Regex("[aeiou]{2}"), "contiguous"),
                                           pre_tokenizers.Split(Regex("tt"), "removed")])
kinds["words"] = t

# Texts.
assigned = [chr(c) for c in range(1, 0x32000) if not 0xD800 <= c < 0xE000]
marks = "\u0301\u0323\u0302\u0327\u0345\u093c\u200d\ufe0f\u20e3\u0e33\u3099"
parts = ["the ", "The LOOP", "takes", "ing", "'s", "'S", "'ſ", "'ll", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u0085", "É", "é", "e\u0301", "ß", "ẞ", "İ", "ı",
         "!", "...", "12", "1234567", "½", "٣", "②", "循", "環境", "ループ", "ガ", "ｶﾞ", "🙂", "👩‍👩‍👧", "🇩🇪", "ж", "Ж", "-", "_", "▁", "▁▁", "ﬁ", "각", "\u1100\u1161\u11a8", "ท", "ำ", "\x00", "\x01",
         "\x7f", "\u200b", "\ufeff", "\ufffd", "<s>", "</s>", "<unk>", "<mask>", "  <mask> ", "[MASK]", "[UNK]", "[INST]", "<pad>", "<|endoftext|>", "<|im_start|>", "<|begin_of_text|>", "<|eot_id|>", "<|end|>",
         "<start>", "loop", "loops", "Straße", "été  ", "Été", " the batch", "<0x0A>", "##ing", "Ġthe", "``", "''", "™", "K", "ǅ", "Σ", "ς", "x" * 30, "ab" * 60, "=" * 20, "9" * 12, "a" * 15]


def text():
    kind = random.random()
    if kind < 0.35:
        line = random.choice(lines + foreign * 20)
        begin = random.randrange(len(line))
        return line[begin:begin + random.randrange(1, 160)]
    if kind < 0.7:
        return "".join(random.choice(parts) for _ in range(random.randrange(1, 14)))
    if kind < 0.85:
        return "".join(random.choice(assigned) if random.random() < 0.5 else random.choice([random.choice(marks), random.choice(parts), " ", "a"]) for _ in range(random.randrange(1, 24)))
    first = random.randrange(len(assigned) - 300)
    return "".join(random.choice([assigned[random.randrange(first, first + 300)], random.choice(marks + " a")]) for _ in range(random.randrange(1, 20)))


def flat(pairs):
    return " ".join(f"{a}-{b}" for a, b in pairs)


def record(name, s, pair):
    if name in pieces:
        p = pieces[name]
        ids = p.encode(s)
        return [" ".join(map(str, ids)), p.decode(ids)]
    t = kinds[name]
    e, both = t.encode(s), t.encode(s, pair)
    bare = t.encode(s, add_special_tokens=False).ids
    return [" ".join(map(str, e.ids)), flat(e.offsets), " ".join(map(str, both.ids)), " ".join(map(str, both.type_ids)), flat(both.offsets), " ".join(map(str, bare)),
            t.decode(e.ids, skip_special_tokens=False), t.decode(e.ids, skip_special_tokens=True)]


def digest(records):
    return hashlib.sha256("\x1e".join("\x1f".join(r) for r in records).encode()).hexdigest()[:16]


models_ = {n: b.hex() for n, b in pieces.items()}
pieces = {n: sentencepiece.SentencePieceProcessor(model_proto=b) for n, b in pieces.items()}
for name in list(kinds):  # as they are read
    kinds[name] = Tokenizer.from_str(kinds[name].to_str())
folder = pathlib.Path(sys.argv[1]) if many else pathlib.Path(".")


def packed(path, value):
    with open(folder / path, "wb") as f, gzip.GzipFile(fileobj=f, mode="wb", mtime=0, filename="") as z:
        z.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


packed("kinds.json.gz", {"files": {n: json.loads(t.to_str()) for n, t in kinds.items()}, "models": models_})
random.seed(6)
number, group, full = (int(sys.argv[2]), 1, 0) if many else (3000, 20, 40)
fixed = ["", " ", "the loop takes a batch", "The LOOP, takes: it's (really)?", "x" * 200, "é" * 50, " leading  two   three ", "tab\tnew\nline\r\n\r\nx", "a<|endoftext|>b", "[MASK", "  [MASK]  "]
texts = fixed + [text() for _ in range(number - len(fixed))]
packed("texts.json.gz", {"texts": texts, "group": group,
                         "full": {n: [record(n, s, texts[i - 1]) for i, s in enumerate(texts[:full])] for n in [*kinds, *pieces]},
                         "digests": {n: [digest([record(n, texts[i], texts[i - 1]) for i in range(at, min(at + group, len(texts)))]) for at in range(0, len(texts), group)]
                                     for n in [*kinds, *pieces]}})
