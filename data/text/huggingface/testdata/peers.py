"""Writes what Hugging Face's tokenizers and sentencepiece do with texts, for the tests of data/text/huggingface. Made with tokenizers
0.23.3 and sentencepiece 0.2.3; run in this folder:

    python peers.py             # the files of the tests
    python peers.py characters  # what each character is to word-piece, for `go test .. -run TestCharacters -characters FOLDER`

Characters of ../characters.txt, which go-huggingface takes for something else, are not drawn here.
"""
import io
import json
import random
import sys

import sentencepiece
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers


def word_piece(vocabulary, lowercase):
    t = Tokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    return t


if sys.argv[1:] == ["characters"]:
    every = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    vocabulary = {name: i for i, name in enumerate(["[UNK]"] + every + ["##" + c for c in every])}
    for lowercase in (True, False):
        t = word_piece(vocabulary, lowercase)
        t.save(f"characters_{lowercase}.json", pretty=False)
        with open(f"characters_{lowercase}.txt", "w") as f:
            for c in every:
                f.write(f"{ord(c):x} {t.encode('a' + c + 'b').ids}\n")
    sys.exit()

corpus = open("../../testdata/corpus.txt", encoding="utf8", newline="").read()
lines = [line for line in corpus.split("\n") if line.strip()]
taken_otherwise = [tuple(int(c, 16) for c in line.split("-")) for line in open("../characters.txt")]
drawn = [chr(c) for c in range(1, 0x20000) if not 0xD800 <= c < 0xE000 and not any(a <= c <= b for a, b in taken_otherwise)]

texts = ["", " ", "the loop takes a batch", "The LOOP, takes: it's (really)?", "über Äpfel ÉTÉ naïve", "循环取出下一批数据", "emoji 🙂 x", "x" * 100, "x" * 101, "é" * 50,
         " leading  two   three ", "tab\tnew\nline\r\n\r\nx", "I'M don't can't, do not!", "[MASK] the [PAD][SEP]", "[MASK", "İstanbul Straße ǅ Ω Σίσυφος",
         "\u00a0nbsp\u3000ideo", "control \x00\x01\x7f x", "½ ² ③ ٣", "ゴ が ガ", "각 한국", "a_b-c+d=e$f^g`h|i~j<k>l", "12,345.67", "e\u0301é", "1. 2 ! 3 ?"]
random.seed(3)
for _ in range(60):
    texts.append("".join(random.choice(["the ", "loop", "takes", "ing", "'s", " ", "  ", "\n", "É", "ß", "!", "12", "循", "🙂", "<s>", "\t", "ж", "-"])
                         for _ in range(12)))
for _ in range(60):
    texts.append("".join(random.choice(drawn + 6000 * [" "] + 6000 * ["the"]) for _ in range(20)))
cases = {"texts": texts}


def keep(name, tokenizer, save=True):
    if save:
        tokenizer.save(f"{name}.json", pretty=False)
    ids = [tokenizer.encode(text).ids for text in texts]
    cases[name] = {"ids": ids, "back": [tokenizer.decode(i, skip_special_tokens=False) for i in ids]}


special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
t = word_piece({"[UNK]": 0}, True)
# tokenizers' WordPieceTrainer chooses among equal pairs by chance, so the words are those of a BPE.
trainer = Tokenizer(models.BPE())
trainer.normalizer, trainer.pre_tokenizer = t.normalizer, t.pre_tokenizer
trainer.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=500, show_progress=False))
names = [n for n, _ in sorted(trainer.get_vocab().items(), key=lambda item: item[1])]
vocabulary = {n: i for i, n in enumerate(special + names + ["##" + n for n in names])}
for name, lowercase in (("uncased", True), ("cased", False)):
    t = word_piece(vocabulary, lowercase)
    t.add_special_tokens(special)
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    keep(name, t)
t.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
keep("processed", t)
keep("bytes", Tokenizer.from_file("../../testdata/tokenizer.json"), save=False)

model = io.BytesIO()
sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, vocab_size=560, minloglevel=2, model_type="bpe", byte_fallback=True,
                                         add_dummy_prefix=False, normalization_rule_name="identity", remove_extra_whitespaces=False,
                                         user_defined_symbols=["<start>"])
open("tokenizer.model", "wb").write(model.getvalue())
s = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
cases["sentencepiece"] = {"ids": [s.encode(x) for x in texts], "back": [s.decode(s.encode(x)) for x in texts]}
print(json.dumps(cases, separators=(",", ":")).replace("],[", "],\n["), file=open("cases.json", "w"))
