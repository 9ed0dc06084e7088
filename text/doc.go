// Package text turns text into numbers and back, for models of language: byte-level BPE (Sennrich et al. 2016, on bytes
// as in Radford et al. 2019), trained here or read from a tokenizer.json of Hugging Face, and the choice of the next
// token from the logits of a model.
//
//	tokens, err := text.BPETraining{Size: 2048, Special: []string{"<|endoftext|>"}}.Train(texts)
//	ids, err := tokens.Encode("package text")
//	back, err := tokens.Decode(ids)
//
// A [BPE] has all 256 bytes among its tokens. So any text can be encoded, and comes back byte for byte, also where it
// is not valid UTF-8.
//
// # Files
//
// A BPE is written and read as Hugging Face's tokenizer.json, by [BPE.MarshalJSON] and [BPE.UnmarshalJSON]: Python's
// tokenizers gives the same ids for it, and trains the same vocabulary from the same texts. What a file has that this
// package does not do (another model, a normalizer, another pre-tokenizer, tokens that a post-processor adds) is an
// error that names it. The module text/huggingface reads some of those.
//
// # Generation
//
// [Sampling] says how a token is chosen: the likeliest one, or one drawn by temperature, top-k and top-p. examples/gpt
// generates text with it.
//
// The package needs nothing but the standard library.
package text
