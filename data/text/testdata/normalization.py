"""Writes normalization.json: texts in Unicode forms, in lower case, and without accents as scikit-learn 1.9 removes them,
and their words by Python 3.11. Run in this folder:

    python normalization.py > normalization.json
"""
import json
import re
import unicodedata
from sklearn.feature_extraction.text import strip_accents_unicode

texts = ["", "plain ASCII Text_1, x2", "Él Niño ÅNGSTRÖM Æsir ß ẞ", "ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ. ΑΣ'Α Α\u0301Σ\u0301 1Σ ΑΣ:", "İstanbul IĞDIR ΑİΣ", "ﬁne ½ ² ℌ K Å ﷺ ｶﾞ Ⅷ",
         "e\u0301 e\u0316\u0301 q\u0323\u0307 q\u0307\u0323", "한국어 가\u11a8", "हिन्दी भाषा है", "日本語のテキスト、です。", "a\u00a0b\u2003c\x1cd\te\u200bf", "don’t d'été 3.14 x²y ①②"]
with open("corpus.txt") as f:
    texts += f.read().splitlines()
cases = []
for text in texts:
    stripped = strip_accents_unicode(text.lower())
    cases.append({"text": text, **{f: unicodedata.normalize(f, text) for f in ("NFC", "NFD", "NFKC", "NFKD")}, "lower": text.lower(),
                  "stripped": stripped, "together": unicodedata.normalize("NFC", strip_accents_unicode(unicodedata.normalize("NFC", text).lower())),
                  "words": re.findall(r"\w+", text)})
json.dump(cases, __import__("sys").stdout, indent=0)
