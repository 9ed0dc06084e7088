// Package text converts between text and token ids for language models, by tokenizers that are opened or trained, and
// samples tokens from logits ([Sampling]).
//
// [Open] reads a folder of the Hugging Face hub: each common tokenizer.json (BPE, WordPiece, Unigram, WordLevel) and
// sentencepiece's tokenizer.model. [Vocabulary] is a GGUF's. Ids, types and offsets equal those of Python's
// tokenizers 0.23 and sentencepiece 0.2; a file whose ids would differ is an error.
//
// [BPETraining] trains BPE of bytes (Sennrich et al. 2016; Radford et al. 2019) as Python's tokenizers. It encodes
// any bytes without loss.
package text
