// Package huggingface opens tokenizers of Hugging Face that package text does not read, from a folder as the hub has
// it:
//
//	tokens, err := huggingface.Open("bert-base-uncased")
//	ids, err := tokens.Encode("The loop takes a batch.")
//
// What it opens gives the ids that Python's tokenizers and sentencepiece give. What would give others is an error that
// says why, of a file or of a text:
//
//	file             what                                               by
//	tokenizer.json   byte-level BPE, as GPT-2's                         package text
//	tokenizer.json   word-piece of BERT: BertNormalizer,                github.com/gomlx/go-huggingface
//	                 BertPreTokenizer, its special tokens around a text
//	tokenizer.model  BPE of sentencepiece with byte fallback, whose     github.com/eliben/go-sentencepiece
//	                 normalizer changes nothing, as Gemma's
//
// Of go-huggingface v0.4.0 the word-piece alone was found right. Its byte-level BPE lacks the expression that
// cuts a text into pieces, its other BPE has no byte fallback, its unigram model takes the longest piece for the
// likeliest, and what it does not know it passes over: of 126 texts, 48, 106 and 75 had other ids. For word-piece,
// a text with a character that it takes for something else than tokenizers does, as U+200B, is an error of Encode, and
// so is one with a very long word beyond ASCII.
//
// It is a module of its own. It reads files and downloads nothing.
package huggingface
