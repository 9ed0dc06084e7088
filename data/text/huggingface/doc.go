// Package huggingface opens tokenizers that package text does not read, from a folder in the layout of the Hugging Face
// hub, as "bert-base-uncased". It is a module of its own and downloads nothing.
//
// Ids equal those of Python's tokenizers and sentencepiece. A file or text that would get other ids is an error:
//
//	file             what                                               by
//	tokenizer.json   byte-level BPE, as GPT-2's                         package text
//	tokenizer.json   word-piece of BERT: BertNormalizer,                github.com/gomlx/go-huggingface
//	                 BertPreTokenizer, its special tokens around a text
//	tokenizer.model  BPE of sentencepiece with byte fallback, whose     github.com/eliben/go-sentencepiece
//	                 normalizer changes nothing, as Gemma's
//
// Other models of go-huggingface v0.4.0 return wrong ids. Word-piece refuses characters that it classifies differently
// from tokenizers, such as U+200B, and very long words beyond ASCII.
package huggingface
