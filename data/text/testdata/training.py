"""Writes what Hugging Face's tokenizers learns of texts, for package text's tests. Made with tokenizers 0.23.3; run in
this folder, after `go test .. -run BPE -write-golden` where what we write has changed:

    python training.py

tokenizer.json is trained on corpus.txt; cases.json has texts with their ids. What package text writes, written.json, must be read to the same ids here.
"""
import json
import random

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

level = pre_tokenizers.ByteLevel(add_prefix_space=False)
corpus = open("corpus.txt", encoding="utf8", newline="").read()
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = level
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train_from_iterator([line + "\n" for line in corpus.split("\n")[:-1]], trainers.BpeTrainer(
    vocab_size=500, min_frequency=2, special_tokens=["<|endoftext|>", "<|end|>"], initial_alphabet=level.alphabet(), show_progress=False))
tokenizer.save("tokenizer.json")
trained = json.loads(tokenizer.to_str())["model"]

written = Tokenizer.from_file("written.json")
assert written.get_vocab() == tokenizer.get_vocab()
assert json.loads(written.to_str())["model"] == trained

texts = ["", " ", "\n", "a", " a", "  a", "a ", "a  ", "\r\n\r\n", "\t\tx\t", "a\n\n\n b", "a \n b", "\u00a0x\u3000y\u2028z\u0085", "don't", "'s's", "DON'T 'Re",
         "I'm you're they'll 'd''d", "x'", "''", "12abc34", "½²Ⅷ٣", "e\u0301é", "🙂👩‍👩‍👧🇩🇪", "\x00\x01\x7f", "\ufeffbom", "\ufffd",
         "a<|endoftext|>b", "<|endoftext|><|endoftext|>", "<|end", "<|end|>of<|endoftext|", " <|end|> ", "aaaaaaaaaaaaaaaaaaaaaaa", "=" * 50,
         "The loop takes the next batch. " * 3, corpus]
random.seed(1)
kinds = ["the loop's batch", " \t\n\r\u00a0", "0123½", "'\"!?.,;:-()", "äéñßцикл循环ループ루프حلق", "🙂🚀👩\u200d", "<|endoftext|>", "\U00010d40\U0002ebf0\u1c89"]
for _ in range(60):
    texts.append("".join(random.choice(random.choice(kinds)) for _ in range(random.randrange(1, 40))))
cases = []
for text in texts:
    ids = tokenizer.encode(text).ids
    assert ids == written.encode(text).ids, text
    assert tokenizer.decode(ids, skip_special_tokens=False) == text, text
    assert written.decode(ids, skip_special_tokens=False) == text, text
    cases.append({"text": text, "ids": ids})

# Tokens that were added behind the training, of both kinds, where one lies in the other.
tokenizer.add_tokens([AddedToken("loop takes"), AddedToken("the loop takes a batch", normalized=False)])
tokenizer.add_special_tokens(["<|pad|>", "takes the"])
added = []
for text in ["the loop takes a batch", "the loop takes<|pad|> a batch", "a loop takes the next", "it takes the loop takes a batch", "unloop takesx"]:
    added.append({"text": text, "ids": tokenizer.encode(text).ids})
json.dump({"cases": cases, "added": added, "tokens": json.loads(tokenizer.to_str())["added_tokens"]}, open("cases.json", "w"), indent=0)
