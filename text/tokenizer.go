package text

// Tokenizer turns text into the numbers of tokens, and back. It may be used by any number of goroutines.
type Tokenizer interface {
	// Encode gives the tokens of a text. It is an error where the tokenizer has none for a part of it, and no unknown
	// token.
	Encode(text string) ([]int32, error)
	// Decode gives the text of tokens. A number that is not from 0 to below Size is an error.
	Decode(ids []int32) (string, error)
	// Size is the number of tokens.
	Size() int
}
