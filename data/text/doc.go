// Package text tokenizes text for language models by byte-level BPE (Sennrich et al. 2016, on bytes as in Radford et
// al. 2019), trained here or read from a tokenizer.json of Hugging Face, and samples tokens from logits ([Sampling]).
//
//	tokens, err := text.BPETraining{Size: 2048, Special: []string{"<|endoftext|>"}}.Train(texts)
//	ids, err := tokens.Encode("package text")
//
// A [BPE] encodes any text, also invalid UTF-8, and decodes it without loss.
//
// # Files
//
// [BPE.MarshalJSON] and [BPE.UnmarshalJSON] use Hugging Face's tokenizer.json. Python's tokenizers returns the same
// ids, and trains the same vocabulary from the same texts. The module data/text/huggingface reads more.
package text
