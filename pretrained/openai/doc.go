// Package openai serves pretrained models over HTTP in the form that clients of OpenAI read:
//
//	POST /v1/chat/completions   an answer in a conversation, by the tokenizer's chat template
//	POST /v1/completions        continuations of one prompt or several
//	POST /v1/embeddings         vectors of texts
//	GET  /v1/models             the models; /v1/models/NAME: one of them
//
// With stream, completions are sent as server-sent events while they are generated. Without max_tokens, their number
// is that of Model.Generation, or ends at the last place. A model works on one request at a time. Others wait, in a
// queue with a limit. A client that leaves ends its request.
//
// A field that would change the answer and is not implemented is an error: n above 1, logprobs, tools, penalties of
// presence and frequency, and unknown fields. Fields that do not change the answer, like user and metadata, are
// ignored. top_k, min_p and repetition_penalty are taken too. An error has the form
//
//	{"error": {"message": text, "type": kind, "param": field or null, "code": text or null}}
//
// with the status
//
//	400  not what the protocol or the model takes   401  without the key
//	404  no such model or path                      405  another method is expected
//	408  the body did not arrive within the Timeout 413  the body is too large
//	500  the model failed                           503  the queue is full: later
//	504  it took longer than the Timeout
//
// Texts of messages may have the model's special tokens, as in transformers: the template's end of a message, for
// example, ends it.
package openai
