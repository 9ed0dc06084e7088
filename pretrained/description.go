package pretrained

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// Description lists a folder's content.
type Description struct {
	Classes []string `json:"architectures"` // of transformers
	Heads   []string `json:"heads"`         // classes whose weights the folder has
	// Sizes are those of config.json by name, max_seq_length of sentence-transformers, and of the weights parameters,
	// tensors and bytes, for quantized ones those in float32, and of the tokenizer its tokens.
	Sizes     map[string]int `json:"sizes"`
	DTypes    []string       `json:"dtypes"`
	Labels    []string       `json:"labels,omitempty"`
	Problem   string         `json:"problem_type,omitempty"` // like multi_label_classification
	Pooling   []string       `json:"pooling,omitempty"`      // of sentence-transformers
	Tokenizer string         `json:"tokenizer,omitempty"`    // its kind, and whether there is a chat template
	Refused   []string       `json:"refused,omitempty"`
}

// Describe returns the folder's content without its weights.
func (b *Base) Describe() Description {
	c := &config{fields: b.fields}
	d := Description{Classes: slices.Clone(b.classes), Heads: []string{}, Problem: c.text("problem_type", ""), Sizes: map[string]int{}}
	for _, name := range []string{"vocab_size", "hidden_size", "dim", "intermediate_size", "hidden_dim", "num_hidden_layers", "n_layers", "num_attention_heads", "n_heads",
		"num_key_value_heads", "max_position_embeddings"} {
		if c.has(name) {
			d.Sizes[name] = c.size(name, 0)
		}
	}
	by := map[string]int{}
	for name, t := range b.tensors {
		if numbers[t.DType].read == nil || constant.MatchString(name) {
			continue // a constant of transformers
		}
		n := 1
		for _, size := range t.Dims {
			n *= size
		}
		d.Sizes["tensors"]++
		d.Sizes["parameters"] += n
		d.Sizes["bytes"] += n * t.DType.Bits() / 8
		by[t.DType.String()] += n
	}
	d.DTypes = slices.SortedFunc(maps.Keys(by), func(x, y string) int { return cmp.Or(cmp.Compare(by[y], by[x]), cmp.Compare(x, y)) })
	d.heads(b)
	refused := func(err error) {
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.Refused = append(d.Refused, err.Error())
		}
	}
	refused(c.err)
	refused(d.text(b))
	if filepath.Ext(b.folder) != ggufExt {
		refused(d.sentences(b))
	}
	return d
}

func (d *Description) heads(b *Base) {
	for _, of := range []task{classification, tokens, answers, maskedLM, causalLM, seq2seqLM} {
		classes := map[task]int{classification: len(b.labels), tokens: len(b.labels), answers: 2}[of]
		f, err := b.describe(max(1, classes))
		if err != nil {
			continue // Open has made one
		}
		h := f.heads[of]
		if h.build == nil || h.err != nil || b.lacks(f, of, h) != nil {
			continue
		}
		if d.Heads = append(d.Heads, f.classOf(of)); of == classification || of == tokens {
			d.Labels = slices.Clone(b.labels)
		}
	}
}

func (d *Description) text(b *Base) error {
	t, err := b.Tokenizer()
	if err != nil {
		return err
	}
	content, err := t.MarshalJSON()
	if err != nil {
		return err
	}
	var of struct{ Model struct{ Type string } }
	err = json.Unmarshal(content, &of)
	d.Tokenizer, d.Sizes["tokens"] = of.Model.Type, t.Size()
	if t.ChatTemplate() != "" {
		d.Tokenizer += " with a chat template"
	}
	return err
}

func (d *Description) sentences(b *Base) error {
	c, err := b.transformerConfig()
	if err != nil {
		return err
	}
	if c.has("max_seq_length") {
		d.Sizes["max_seq_length"] = c.size("max_seq_length", 0)
	}
	if c.err != nil {
		return c.err
	}
	n := b.Hidden()
	if n.err != nil {
		return n.err
	}
	modes, normalize, err := b.pooling(n)
	if n.sentences[modulesFile] != nil || err != nil { // a new one, for Save
		return err
	}
	if d.Pooling = modes; normalize {
		d.Pooling = append(d.Pooling, "normalize")
	}
	return nil
}

// String returns a table.
func (d Description) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name string, values ...string) {
		if all := strings.Join(values, ", "); all != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, all)
		}
	}
	row("model", d.Classes...)
	row("heads", cmp.Or(strings.Join(d.Heads, ", "), "none"))
	row("labels", d.Labels...)
	row("problem", d.Problem)
	var sizes []string
	for _, name := range slices.Sorted(maps.Keys(d.Sizes)) {
		sizes = append(sizes, fmt.Sprintf("%s %d", name, d.Sizes[name]))
	}
	row("sizes", sizes...)
	row("dtypes", d.DTypes...)
	row("pooling", d.Pooling...)
	row("tokenizer", cmp.Or(d.Tokenizer, "none"))
	for _, reason := range d.Refused {
		row("refused", reason)
	}
	table.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}
