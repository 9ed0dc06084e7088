package tables

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
)

// Texts converts a column of texts to token ids, int32 [n, Length], in its own field. Padding at the end fills
// shorter texts; nn.Embedding{Padding} masks it. A missing text is empty.
//
// Without a Tokenizer the tokens are words between spaces, without ASCII punctuation, as of Keras' TextVectorization:
// 0 is padding, 1 an unknown word, and the training data's words follow, the most frequent first.
// [Preparation.Classes] lists the tokens.
type Texts struct {
	Column string
	// Field is the field's name, "x" if "".
	Field string
	// Form, Lower and StripAccents are as in [text.Normalization].
	Form                string
	Lower, StripAccents bool
	// Size is the greatest number of words, with padding and unknown; 0 is no limit.
	Size int
	// Tokenizer takes special tokens in a text as ordinary text, and adds its own around it. It must come from, or
	// encode as, a tokenizer.json.
	Tokenizer *text.Tokenizer
	// Padding is the Tokenizer's token for padding, like "<pad>"; "" is that of its role "pad".
	Padding string
	// Length is the number of tokens; 0 means the longest training text's. A longer text is an error, or with Cut loses
	// its end.
	Length int
	Cut    bool
}

const asTokens = "tokens"

func (t Texts) rule() ([]string, string, error) {
	switch {
	case t.Column == "":
		return nil, "", errors.New("the Column is empty, expected the name of a column of texts")
	case t.Size < 0 || t.Size > 0 && t.Size < firstWord+1 || t.Length < 0:
		return nil, "", fmt.Errorf("the Size is %d and the Length %d: expected 0, or at least %d and 1", t.Size, t.Length, firstWord+1)
	case t.Tokenizer == nil && t.Padding != "" || t.Tokenizer != nil && t.Size != 0:
		return nil, "", errors.New("the Padding is set without a Tokenizer, or the Size with one")
	case t.Cut && t.Length == 0:
		return nil, "", errors.New("the setting Cut needs a Length")
	}
	_, err := text.Normalization{Form: t.Form}.Apply("")
	return []string{t.Column}, cmp.Or(t.Field, "x"), err
}

func (t Texts) fit(names []string, columns []data.Array) ([]prepared, error) {
	c := &tokens{source: source{Column: t.Column, Field: cmp.Or(t.Field, "x"), As: asTokens}, Tokenizer: t.Tokenizer, Length: t.Length, Cut: t.Cut,
		Normalization: text.Normalization{Form: t.Form, Lower: t.Lower, StripAccents: t.StripAccents}}
	if err := c.fit(t, columns[0]); err != nil {
		return nil, fmt.Errorf("column %q: %w", names[0], err)
	}
	return []prepared{c}, nil
}

func (c *tokens) fit(t Texts, column data.Array) error {
	all, err := plainTexts(column)
	if err != nil {
		return err
	}
	if t.Tokenizer != nil {
		if err := c.readTokenizer(t); err != nil {
			return err
		}
	}
	longest, counts := 1, map[string]int{}
	for i, one := range all {
		words, ids, err := c.divide(one)
		if err != nil {
			return rowError(i, "%w", err)
		}
		for _, w := range words {
			counts[w]++
		}
		longest = max(longest, len(words), len(ids))
		if t.Length > 0 {
			if _, err := c.fitting(i, max(len(words), len(ids))); err != nil {
				return err
			}
		}
	}
	if c.Length == 0 {
		c.Length = longest
	}
	if t.Tokenizer == nil {
		for w := range counts {
			c.Words = append(c.Words, w)
		}
		slices.SortFunc(c.Words, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(b, a)) }) // Keras' order
		if t.Size > 0 {
			c.Words = c.Words[:min(len(c.Words), t.Size-firstWord)]
		}
		if len(c.Words) == 0 {
			return fmt.Errorf("the %d texts have no words", len(all))
		}
	}
	return nil
}

func (c *tokens) readTokenizer(t Texts) error {
	// The Preparation is saved, and the caller's tokenizer may change.
	file, err := t.Tokenizer.MarshalJSON()
	if err == nil {
		c.Tokenizer = new(text.Tokenizer)
		err = c.Tokenizer.UnmarshalJSON(file)
	}
	if err != nil {
		return fmt.Errorf("the Tokenizer: %w", err)
	}
	id, ok := t.Tokenizer.Special("pad")
	if t.Padding != "" {
		id, ok = t.Tokenizer.ID(t.Padding)
	}
	if !ok {
		return fmt.Errorf("the Tokenizer has no token %s for padding: name one of its tokens in Texts.Padding; to train one with it, list it in Special",
			quoted(cmp.Or(t.Padding, `of the role "pad"`)))
	}
	c.Padding = id
	return nil
}

const (
	unknownWord = 1
	firstWord   = 2
)

type tokens struct {
	source
	text.Normalization
	Words     []string        `json:"words,omitempty"`
	Tokenizer *text.Tokenizer `json:"tokenizer,omitempty"`
	Padding   int32           `json:"padding,omitempty"`
	Length    int             `json:"length"`
	Cut       bool            `json:"cut,omitempty"`

	ids map[string]int32
}

func (*tokens) integers() bool { return true }

func (c *tokens) width() int { return c.Length }

func (c *tokens) names() []string {
	names := make([]string, c.Length)
	for i := range names {
		names[i] = fmt.Sprintf("%s token %d", c.Column, i+1)
	}
	return names
}

func (c *tokens) classNames() []string {
	if c.Tokenizer == nil {
		return append([]string{"", "[UNK]"}, c.Words...)
	}
	names := make([]string, c.Tokenizer.Size())
	for i := range names {
		names[i], _ = c.Tokenizer.Token(int32(i))
	}
	return names
}

func (c *tokens) check() error {
	if _, err := c.Apply(""); err != nil {
		return err
	}
	switch {
	case c.Length < 1 || c.Length > mostWide:
		return fmt.Errorf("a length of %d tokens, expected 1 to %d: set Texts.Length and Texts.Cut: %w", c.Length, mostWide, data.ErrLimit)
	case (c.Tokenizer == nil) == (len(c.Words) == 0), len(c.Words) > math.MaxInt32-firstWord:
		return fmt.Errorf("%d words, and a tokenizer is %t: expected one of them", len(c.Words), c.Tokenizer != nil)
	case c.Padding < 0 || c.Tokenizer == nil && c.Padding != 0 || c.Tokenizer != nil && int(c.Padding) >= c.Tokenizer.Size():
		return fmt.Errorf("the padding is token %d, which there is not", c.Padding)
	}
	c.ids = make(map[string]int32, len(c.Words))
	for i, w := range c.Words {
		c.ids[w] = int32(i + firstWord)
	}
	if len(c.ids) < len(c.Words) {
		return fmt.Errorf("%d of %d words are listed twice", len(c.Words)-len(c.ids), len(c.Words))
	}
	return nil
}

// divide returns words without a tokenizer, ids with one.
func (c *tokens) divide(one string) (words []string, ids []int32, err error) {
	if c.Tokenizer == nil || c.Normalization != (text.Normalization{}) {
		if one, err = c.Apply(one); err != nil {
			return nil, nil, err
		}
	}
	if c.Tokenizer == nil {
		one = strings.Map(func(r rune) rune {
			if r < 0x80 && strings.ContainsRune("!\"#$%&()*+,-./:;<=>?@[\\]^_`{|}~'", r) {
				return -1
			}
			return r
		}, one)
		return strings.FieldsFunc(one, func(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' }), nil, nil
	}
	in := text.Input{Text: one, Ordinary: true}
	if c.Cut {
		in.Most = c.Length
	}
	e, err := c.Tokenizer.EncodeText(in)
	return nil, e.IDs, err
}

func (c *tokens) fitting(row, n int) (int, error) {
	if n > c.Length && !c.Cut {
		return 0, rowError(row, "the text has %d tokens, expected at most %d: set Texts.Length, or Texts.Cut to keep the first ones", n, c.Length)
	}
	return min(n, c.Length), nil
}

func (c *tokens) convert(columns []data.Array, to cells) error {
	all, err := plainTexts(columns[0])
	if err != nil {
		return err
	}
	for row, one := range all {
		words, ids, err := c.divide(one)
		if err != nil {
			return rowError(row, "%w", err)
		}
		n, err := c.fitting(row, max(len(words), len(ids)))
		if err != nil {
			return err
		}
		for i := range c.Length {
			id := c.Padding
			switch {
			case i >= n:
			case c.Tokenizer == nil:
				known := false
				if id, known = c.ids[words[i]]; !known {
					id = unknownWord
				}
			default:
				id = ids[i]
			}
			to.classes[row*to.stride+i] = id
		}
	}
	return nil
}
