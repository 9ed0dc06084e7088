"""Writes terms.json: what scikit-learn 1.9 makes of texts by CountVectorizer and TfidfVectorizer. Run in this folder:

    python terms.py > terms.json
"""
import json
import sys
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

with open("../../text/testdata/corpus.txt") as f:
    lines = [line for line in f.read().splitlines() if line]
texts = lines[:16] + ["", "a", "The  next\u00a0\u2003batch\nand\ta\x1cloop", "x", "the the the loop, unseen words: zebra", "niña NIÑA nina ﬁne"]
n = 14  # training texts
# The limits of terms divide none that are equally frequent, which scikit-learn takes in any order.
cases = [
    (CountVectorizer(), dict(Lower=True)),
    (CountVectorizer(lowercase=False, binary=True), dict(Binary=True)),
    (CountVectorizer(strip_accents="unicode", ngram_range=(1, 2), min_df=2), dict(Lower=True, StripAccents=True, NGrams=[1, 2], MinTexts=2)),
    (CountVectorizer(stop_words=["the", "and", "of"], ngram_range=(2, 3), max_df=0.1), dict(Lower=True, Stop=["the", "and", "of"], NGrams=[2, 3], MaxTexts=0.1)),
    (CountVectorizer(analyzer="char", ngram_range=(1, 2), max_df=0.5), dict(Lower=True, Characters=True, NGrams=[1, 2], MaxTexts=0.5)),
    (CountVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=3), dict(Lower=True, Characters=True, WithinWords=True, NGrams=[2, 5], MinTexts=3)),
    (CountVectorizer(max_features=5), dict(Lower=True, MaxTerms=5)),
    (TfidfVectorizer(), dict(Lower=True, IDF=True, Norm=2)),
    (TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=0.1, max_df=6), dict(Lower=True, Sublinear=True, IDF=True, Norm=2, NGrams=[1, 2], MinTexts=0.1, MaxTexts=6)),
    (TfidfVectorizer(smooth_idf=False, norm="l1"), dict(Lower=True, IDF=True, Unsmoothed=True, Norm=1)),
    (TfidfVectorizer(use_idf=False, norm="l1", sublinear_tf=True), dict(Lower=True, Sublinear=True, Norm=1)),
    (TfidfVectorizer(norm=None, binary=True), dict(Lower=True, IDF=True, Binary=True)),
    (TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3), max_features=11, norm="l2"), dict(Lower=True, Characters=True, WithinWords=True, NGrams=[3, 3], MaxTerms=11, IDF=True, Norm=2)),
]
made = []
for v, settings in cases:
    fitted = v.fit_transform(texts[:n])
    rows = v.transform(texts).tocsr()
    rows.sort_indices()
    made.append({"Settings": settings, "Terms": list(v.get_feature_names_out()),
                 "Rows": [{int(j): float(f"{x:.9g}") for j, x in zip(r.indices, r.data)} for r in rows]})
json.dump({"Texts": texts, "N": n, "Cases": made}, sys.stdout, ensure_ascii=False, separators=(",", ":"))
