package pretrained

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
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
// Errors: no texts or an empty one without added tokens, and ids that the model does not have, also for the padding.
// Texts are truncated to Most of an input only, not to max_seq_length of sentence-transformers: networks refuse texts
// that are too long for them.
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
	if int(fill) >= words {
		return nil, fmt.Errorf("the tokenizer's token for padding has the id %d, the model's have ids below %d: set pad_token in tokenizer_config.json to one of them", fill, words)
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

// Trim returns a function for flaxlike.Fit.Augment that removes the places at the end at which no text of a batch has
// a token, so that short texts cost less. The others are rounded up to a multiple of places. Each length compiles a
// program. It trims the networks' inputs and the named fields, such as labels [texts, places].
func Trim(places int, fields ...string) func(data.Batch) (data.Batch, error) {
	names := append([]string{idsInput, maskInput, typesInput}, fields...)
	return func(b data.Batch) (data.Batch, error) {
		out, err := trim(b, places, names)
		if err != nil {
			return b, fmt.Errorf("pretrained: trim: %w", err)
		}
		return out, nil
	}
}

// Predict is [flaxlike.Model.Predict] for a set of [Base.Set]: texts of similar lengths are in a batch, without padding
// that they do not need, and the answers are in the set's order. It is for outputs of texts. Those of places are an
// error, if batches have different numbers of places.
func Predict(ctx context.Context, m *flaxlike.Model, set *data.Set) (flaxlike.Prediction, error) {
	p, err := predict(ctx, m, set)
	if err != nil {
		return flaxlike.Prediction{}, fmt.Errorf("pretrained: predict: %w", err)
	}
	return p, nil
}

func predict(ctx context.Context, m *flaxlike.Model, set *data.Set) (p flaxlike.Prediction, err error) {
	if set == nil || set.Len() == 0 {
		return p, errors.New("the set has no texts")
	}
	mask, err := set.Field(maskInput)
	if err != nil {
		return p, err
	}
	seen, err := seenOf(mask)
	if err != nil {
		return p, err
	}
	lengths, order, back := make([]int, set.Len()), make([]int, set.Len()), make([]int, set.Len())
	for i := range order {
		order[i] = i
		for _, there := range seen[i*mask.Dims[1]:][:mask.Dims[1]] {
			if there {
				lengths[i]++
			}
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(lengths[i], lengths[j]) })
	for at, i := range order {
		back[i] = at
	}
	const places = 16 // each length compiles a program
	if set, err = set.Gather(order); err != nil {
		return p, err
	}
	if set, err = set.MapBatches(Trim(places)); err != nil {
		return p, err
	}
	if p, err = m.Predict(ctx, set); err != nil {
		return p, err
	}
	return p.Gather(back)
}

// seenOf returns the elements of a mask of Base.Set.
func seenOf(mask data.Array) ([]bool, error) {
	seen, ok := mask.Flat.([]bool)
	if !ok || len(mask.Dims) != 2 {
		return nil, fmt.Errorf("the field %q is %s %v, expected bool [texts, places] of Base.Set", maskInput, mask.DType(), mask.Dims)
	}
	return seen, nil
}

// firstPlaces returns the first places of each text.
func firstPlaces(a data.Array, n int) data.Array {
	texts, places := a.Dims[0], a.Dims[1]
	rows := make([]int, 0, texts*n)
	for i := range texts {
		for j := range n {
			rows = append(rows, i*places+j)
		}
	}
	flat := data.Array{Flat: a.Flat, Dims: append([]int{texts * places}, a.Dims[2:]...)}
	return data.Array{Flat: flat.Gather(rows).Flat, Dims: append([]int{texts, n}, a.Dims[2:]...)}
}

func trim(b data.Batch, multiple int, names []string) (data.Batch, error) {
	if multiple < 1 || multiple > mostSize {
		return b, fmt.Errorf("a multiple of %d places, expected 1 to %d", multiple, mostSize)
	}
	at := slices.IndexFunc(b.Fields, func(f data.Field) bool { return f.Name == maskInput })
	if at < 0 {
		return b, fmt.Errorf("the batch has no field %q", maskInput)
	}
	mask := b.Fields[at].Array
	seen, err := seenOf(mask)
	if err != nil {
		return b, err
	}
	all, kept := mask.Dims[1], 1
	for i, there := range seen {
		if there {
			kept = max(kept, i%all+1)
		}
	}
	kept = min((kept+multiple-1)/multiple*multiple, all)
	b.Fields = slices.Clone(b.Fields)
	for _, name := range names {
		at := slices.IndexFunc(b.Fields, func(f data.Field) bool { return f.Name == name })
		switch {
		case at < 0 && name == typesInput:
			continue
		case at < 0:
			return b, fmt.Errorf("the batch has no field %q", name)
		}
		a := &b.Fields[at].Array
		if len(a.Dims) < 2 || a.Dims[1] != all {
			return b, fmt.Errorf("the field %q is %s %v, expected [texts, %d places]", name, a.DType(), a.Dims, all)
		}
		*a = firstPlaces(*a, kept)
	}
	return b, nil
}
