package pretrained

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/document"
	"github.com/lazo-ml/lazo/internal/regular"
)

// Tokenizer returns the folder's tokenizer or of the file .gguf. It reads the files once.
func (b *Base) Tokenizer() (*text.Tokenizer, error) {
	t, err := b.tokenizer()
	if err != nil {
		return nil, fmt.Errorf("pretrained: the tokenizer of %s: %w", b.folder, err)
	}
	return t, nil
}

// Set encodes texts with the folder's tokenizer, as the fields input_ids, int32 [texts, places], attention_mask, bool,
// and token_type_ids, int32, for networks that take them. It pads at the end, to the length of the longest. The set
// also has the given fields, like the labels.
//
// Errors: no texts or an empty one without added tokens, and ids that the model lacks, also for the padding. Texts
// are truncated to Most of an input only, not to max_seq_length of sentence-transformers: networks refuse longer
// ones.
func (b *Base) Set(texts []text.Input, fields ...data.Field) (*data.Set, error) {
	set, err := b.set(texts, fields)
	if err != nil {
		return nil, fmt.Errorf("pretrained: texts for %s: %w", b.folder, err)
	}
	return set, nil
}

func (b *Base) set(texts []text.Input, fields []data.Field) (*data.Set, error) {
	all, err := b.encoded("", texts)
	if err != nil {
		return nil, err
	}
	return data.New(append(all, fields...)...)
}

type encoding struct {
	ids, types [][]int32
	fill       int32
}

func (b *Base) tokenize(texts []text.Input) (all encoding, err error) {
	t, err := b.Tokenizer()
	if err != nil {
		return all, err
	}
	if len(texts) == 0 {
		return all, errors.New("there are no texts")
	}
	c := &config{fields: b.fields}
	words := c.size("vocab_size", 0)
	fill, known := t.Special("pad")
	if !known {
		fill = max(0, int32(c.id("pad_token_id", 0, words)))
	}
	if c.err != nil {
		return all, c.err
	}
	if int(fill) >= words {
		return all, fmt.Errorf("the tokenizer's token for padding has the id %d, the model's have ids below %d: set pad_token in tokenizer_config.json to one of them", fill, words)
	}
	all.fill = fill
	for i, in := range texts {
		e, err := t.EncodeText(in)
		if err != nil {
			return all, fmt.Errorf("text %d: %w", i, err)
		}
		if len(e.IDs) == 0 {
			return all, fmt.Errorf("text %d has no tokens", i)
		}
		if id := slices.Max(e.IDs); int(id) >= words {
			token, _ := t.Token(id)
			return all, fmt.Errorf("text %d has the token %q of id %d, the model's have ids below %d: is the tokenizer of another model?", i, token, id, words)
		}
		all.ids, all.types = append(all.ids, e.IDs), append(all.types, e.Types)
	}
	return all, nil
}

// typedTokenizers are the classes whose tokenizers return token_type_ids without model_input_names in
// tokenizer_config.json; "" is that of the model. Without types, transformers' BERT takes zeros.
var typedTokenizers = []string{"", "BertTokenizer", "BertTokenizerFast", "MobileBertTokenizer", "MobileBertTokenizerFast"}

func (b *Base) typed() (bool, error) {
	var of struct {
		Names []string `json:"model_input_names"`
		Class string   `json:"tokenizer_class"`
	}
	path := filepath.Join(b.folder, "tokenizer_config.json")
	content, err := regular.Read(path, mostText)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err == nil {
		err = document.Exact(content, &of, false)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if of.Names != nil {
		return slices.Contains(of.Names, typesInput), nil
	}
	return slices.Contains(typedTokenizers, of.Class), nil
}

func (b *Base) encoded(prefix string, texts []text.Input) ([]data.Field, error) {
	e, err := b.tokenize(texts)
	if err != nil {
		return nil, err
	}
	f, err := b.describe(1)
	if err != nil {
		return nil, err
	}
	padded, mask, err := data.PadSequences(e.ids, e.fill)
	if err != nil {
		return nil, err
	}
	all := []data.Field{{Name: prefix + idsInput, Array: padded}, {Name: prefix + maskInput, Array: mask}}
	if f.types {
		typed, err := b.typed()
		if err != nil {
			return nil, err
		}
		for _, of := range e.types {
			if !typed {
				clear(of)
			}
		}
		padded, _, err := data.PadSequences(e.types, 0)
		if err != nil {
			return nil, err
		}
		all = append(all, data.Field{Name: prefix + typesInput, Array: padded})
	}
	return all, nil
}

// Trim returns a function for flaxlike.Fit.Augment that removes the places at the end at which no text of a batch has a
// token. Their number is rounded up: with places 8 to 8, 16, …, 64, 80, …, 128, 160. Each length compiles a program,
// for pairs each combination of lengths. It trims the networks' inputs and the named fields, like labels [texts,
// places]; those of [Base.Pairs] each to an own length.
func Trim(places int, fields ...string) func(data.Batch) (data.Batch, error) {
	fields = slices.Clone(fields)
	round := func(n int) int { return rounded(n, places) }
	return func(b data.Batch) (data.Batch, error) {
		if places < 1 || places > mostSize {
			return b, fmt.Errorf("pretrained: trim: a multiple of %d places, expected 1 to %d", places, mostSize)
		}
		out, err := trim(b, round, "", fields)
		for _, prefix := range []string{positivePrefix, negativePrefix} {
			if _, without := b.Field(prefix + maskInput); err == nil && without == nil {
				out, err = trim(out, round, prefix, nil)
			}
		}
		if err != nil {
			return b, fmt.Errorf("pretrained: trim: %w", err)
		}
		return out, nil
	}
}

// Predict is [flaxlike.Model.Predict] for a set of [Base.Set]: a batch has texts of similar lengths, without needless
// padding; answers are in the set's order. It is for outputs of texts. Those of places are an error if batches have
// different numbers of them.
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
	seen, err := seenOf(maskInput, mask)
	if err != nil {
		return p, err
	}
	var counts []bool // nil: all; Model.Predict omits the others
	if included, err := set.Field(data.Mask); err == nil {
		counts, _ = included.Flat.([]bool)
	}
	var rows []int
	lengths, places := make([]int, set.Len()), make([]int, set.Len())
	for i := range lengths {
		if counts == nil || counts[i] {
			rows = append(rows, i)
		}
		for _, there := range seen[i*mask.Dims[1]:][:mask.Dims[1]] {
			if there {
				lengths[i]++
			}
		}
	}
	order := slices.Clone(rows)
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(lengths[i], lengths[j]) })
	for place, i := range order {
		places[i] = place
	}
	for at, i := range rows {
		rows[at] = places[i]
	}
	if set, err = set.Gather(order); err != nil {
		return p, err
	}
	if set, err = set.MapBatches(func(b data.Batch) (data.Batch, error) {
		return trim(b, func(n int) int { return rounded(n, 8) }, "", nil)
	}); err != nil {
		return p, err
	}
	if p, err = m.Predict(ctx, set); err != nil {
		return p, err
	}
	return p.Gather(rows)
}

// rounded has at most 4 lengths between a length and its double, for few programs, and adds less than a quarter.
func rounded(n, step int) int {
	for n > 8*step {
		step *= 2
	}
	return (n + step - 1) / step * step
}

func seenOf(name string, mask data.Array) ([]bool, error) {
	seen, ok := mask.Flat.([]bool)
	if !ok || len(mask.Dims) != 2 {
		return nil, fmt.Errorf("the field %q is %s %v, expected bool [texts, places] of Base.Set", name, mask.DType(), mask.Dims)
	}
	return seen, nil
}

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

func trim(b data.Batch, round func(places int) int, prefix string, fields []string) (data.Batch, error) {
	ofMask, ofTypes := prefix+maskInput, prefix+typesInput
	at := slices.IndexFunc(b.Fields, func(f data.Field) bool { return f.Name == ofMask })
	if at < 0 {
		return b, fmt.Errorf("the batch has no field %q", ofMask)
	}
	mask := b.Fields[at].Array
	seen, err := seenOf(ofMask, mask)
	if err != nil {
		return b, err
	}
	all, kept := mask.Dims[1], 1
	for i, there := range seen {
		if there {
			kept = max(kept, i%all+1)
		}
	}
	kept = min(round(kept), all)
	b.Fields = slices.Clone(b.Fields)
	for _, name := range append([]string{prefix + idsInput, ofMask, ofTypes}, fields...) {
		at := slices.IndexFunc(b.Fields, func(f data.Field) bool { return f.Name == name })
		switch {
		case at < 0 && name == ofTypes:
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
