"""Writes texts.json: what Keras 3.15's TextVectorization makes of texts. Keras lowers ASCII letters alone, so the texts
have no other capitals. Run in this folder:

    KERAS_BACKEND=tensorflow python texts.py > texts.json
"""
import json
import sys
from keras.layers import TextVectorization

texts = ["The soup was good, but the tea was not good!", "the bill: a disaster (again)", "  our   waiter\twas\nlovely - don't", "", "!?", "the view was fine; the view, the view",
         "niño «qué» été’s the room", "C++ and C_1 e-mail [x] \"y\" ~z`", "UNSEEN words of the test", "the soup", "a b c d e f g h i j k l m n", "two\u00a0words\u2003here\x1cand"]
n = 8
made = []
for settings in ({"Length": 14}, {"Size": 8, "Length": 15}, {"Length": 5, "Cut": True}, {"Size": 12, "Length": 14}):
    v = TextVectorization(max_tokens=settings.get("Size"), output_sequence_length=settings.get("Length"))
    v.adapt(texts[:n])
    made.append({"Settings": {"Lower": True, **settings}, "Words": v.get_vocabulary(), "IDs": v(texts).numpy().tolist()})
json.dump({"Texts": texts, "N": n, "Cases": made}, sys.stdout, ensure_ascii=False, separators=(",", ":"))
