package text

// Tokenizer converts between text and token ids. It must be safe for concurrent use.
type Tokenizer interface {
	// Encode returns an error for text without a token, if there is no unknown token.
	Encode(text string) ([]int32, error)
	// Decode returns the text of ids. Those outside 0 to Size-1 are an error.
	Decode(ids []int32) (string, error)
	// Size is the number of tokens.
	Size() int
}
