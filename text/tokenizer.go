package text

// Tokenizer converts between text and token ids. It must be safe for concurrent use.
type Tokenizer interface {
	// Encode returns the token ids of a text. It returns an error for text without a token, if there is no unknown
	// token.
	Encode(text string) ([]int32, error)
	// Decode returns the text of token ids. An id outside 0 to Size-1 is an error.
	Decode(ids []int32) (string, error)
	// Size returns the number of tokens.
	Size() int
}
