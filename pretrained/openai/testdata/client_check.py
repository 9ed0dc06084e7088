"""Calls the server at argv[1] by the package openai, as its users do: chats, completions, streams, embeddings, errors.

The model "small" makes completions and embeddings of the words w0 to w59. The key is "sesame".
"""
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="sesame", max_retries=0)
assert [m.id for m in client.models.list()] == ["small"]
assert client.models.retrieve("small").owned_by == "lazo"

messages = [{"role": "system", "content": "w11"}, {"role": "user", "content": "w12 w13"}]
chat = dict(model="small", messages=messages, max_completion_tokens=6, seed=3, temperature=1.3, top_p=0.9)
whole = client.chat.completions.create(**chat)
answer = whole.choices[0]
assert answer.message.role == "assistant" and len(answer.message.content.split()) <= 6, whole
assert answer.finish_reason in ("stop", "length") and answer.index == 0
assert whole.usage.prompt_tokens == 8 and whole.usage.total_tokens == 8 + whole.usage.completion_tokens
text, ends, used = "", [], None
for part in client.chat.completions.create(**chat, stream=True, stream_options={"include_usage": True}):
    if part.choices:
        text += part.choices[0].delta.content or ""
        ends.append(part.choices[0].finish_reason)
    used = part.usage or used
assert text == answer.message.content, (text, answer)
assert ends[-1] == answer.finish_reason and not any(ends[:-1])
assert used == whole.usage, (used, whole.usage)
last = text.split()[-1]
with client.chat.completions.stream(**chat, stop=last) as stream:
    assert stream.get_final_completion().choices[0].message.content == text[:text.index(last)]

plain = client.completions.create(model="small", prompt=["w20 w30 w40", "w5"], max_tokens=8, temperature=0)
assert [c.index for c in plain.choices] == [0, 1] and plain.usage.prompt_tokens == 4
one = client.completions.create(model="small", prompt=[20, 30, 40], max_tokens=8, temperature=0, stream=True)
assert "".join(c.choices[0].text for c in one) == plain.choices[0].text
words = plain.choices[0].text.split()
short = client.completions.create(model="small", prompt="w20 w30 w40", max_tokens=8, temperature=0, stop=[words[-1]], extra_body={"top_k": 5})
assert short.choices[0].finish_reason == "stop" and words[-1] not in short.choices[0].text.split(), short

vectors = client.embeddings.create(model="small", input=["w5 w6", "w7"])  # in base64
floats = client.embeddings.create(model="small", input=[[5, 6], [7]], encoding_format="float")
assert len(vectors.data) == 2 and len(vectors.data[0].embedding) == 16
assert all(abs(a - b) < 1e-7 for v, f in zip(vectors.data, floats.data) for a, b in zip(v.embedding, f.embedding))
assert vectors.usage.prompt_tokens == 3


def refused(kind, call, code=None, param=None):
    try:
        call()
    except kind as e:
        assert e.code == code and e.param == param and e.body["message"], e
    else:
        raise AssertionError(f"no {kind}")


refused(openai.NotFoundError, lambda: client.chat.completions.create(model="large", messages=messages), "model_not_found", "model")
refused(openai.BadRequestError, lambda: client.chat.completions.create(**chat, n=2), None, "n")
refused(openai.BadRequestError, lambda: client.completions.create(model="small", prompt="w1 " * 40), "context_length_exceeded", "prompt")
refused(openai.AuthenticationError, lambda: openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="salt", max_retries=0).models.list(), "invalid_api_key")
print("openai", openai.__version__, "agrees")
