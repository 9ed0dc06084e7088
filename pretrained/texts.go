package pretrained

import (
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
)

// Tokenizer returns the tokenizer of the folder or of the file .gguf. It reads the files once.
func (b *Base) Tokenizer() (*text.Tokenizer, error) {
	t, err := b.tokenizer()
	if err != nil {
		return nil, fmt.Errorf("pretrained: the tokenizer of %s: %w", b.folder, err)
	}
	return t, nil
}

// Set encodes texts with the folder's tokenizer, as the fields input_ids, int32 [texts, places], attention_mask, bool,
// and token_type_ids, int32, for networks that take them. It pads at the end, to the length of the longest. The set
// also has the given fields, such as the labels.
//
// Errors: no texts or an empty one without added tokens, and ids that the model does not have. Texts are truncated to
// Most of an input only: networks refuse texts that are too long for them.
func (b *Base) Set(texts []text.Input, fields ...data.Field) (*data.Set, error) {
	set, err := b.set(texts, fields)
	if err != nil {
		return nil, fmt.Errorf("pretrained: texts for %s: %w", b.folder, err)
	}
	return set, nil
}

func (b *Base) set(texts []text.Input, fields []data.Field) (*data.Set, error) {
	t, err := b.Tokenizer()
	if err != nil {
		return nil, err
	}
	f, err := b.describe(1)
	if err != nil {
		return nil, err
	}
	if len(texts) == 0 {
		return nil, errors.New("there are no texts")
	}
	c := &config{fields: b.fields}
	words := c.size("vocab_size", 0)
	fill, known := t.Special("pad")
	if !known {
		fill = max(0, int32(c.id("pad_token_id", 0, words)))
	}
	if c.err != nil {
		return nil, c.err
	}
	ids, types := make([][]int32, len(texts)), make([][]int32, len(texts))
	for i, in := range texts {
		e, err := t.EncodeText(in)
		if err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
		if len(e.IDs) == 0 {
			return nil, fmt.Errorf("text %d has no tokens", i)
		}
		if id := slices.Max(e.IDs); int(id) >= words {
			token, _ := t.Token(id)
			return nil, fmt.Errorf("text %d has the token %q of id %d, the model's have ids below %d: is the tokenizer of another model?", i, token, id, words)
		}
		ids[i], types[i] = e.IDs, e.Types
	}
	padded, mask, err := data.PadSequences(ids, fill)
	if err != nil {
		return nil, err
	}
	all := []data.Field{{Name: idsInput, Array: padded}, {Name: maskInput, Array: mask}}
	if f.types {
		padded, _, err := data.PadSequences(types, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, data.Field{Name: typesInput, Array: padded})
	}
	return data.New(append(all, fields...)...)
}
