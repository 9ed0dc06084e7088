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

// Description is what a folder or a file .gguf has.
type Description struct {
	Type       string         `json:"model_type"`
	Classes    []string       `json:"architectures"` // of transformers, that the folder's model is of
	Heads      []string       `json:"heads"`         // classes whose weights the folder has
	Sizes      map[string]int `json:"sizes"`         // by their names in config.json
	Tensors    int            `json:"tensors"`
	Parameters int64          `json:"parameters"`
	Bytes      int64          `json:"bytes"`  // of the weights; of quantized ones in float32
	DTypes     []string       `json:"dtypes"` // of the weights, the most common first
	Labels     []string       `json:"labels,omitempty"`
	Problem    string         `json:"problem_type,omitempty"` // of a classifier: such as multi_label_classification
	// Pooling is that of sentence-transformers, if the folder has its files, and Longest its maximum number of tokens.
	Pooling   []string `json:"pooling,omitempty"`
	Longest   int      `json:"max_seq_length,omitempty"`
	Tokenizer string   `json:"tokenizer,omitempty"` // its kind
	Tokens    int      `json:"tokens,omitempty"`    // of the tokenizer
	Chat      bool     `json:"chat_template"`
	// Refused has the reasons why lazo does not read a part of the folder, such as its tokenizer.
	Refused []string `json:"refused,omitempty"`
}

// Describe returns the folder's content without its weights.
func (b *Base) Describe() Description {
	c := &config{fields: b.fields}
	d := Description{Type: c.text("model_type", ""), Classes: slices.Clone(b.classes), Heads: []string{}, Problem: c.text("problem_type", ""), Sizes: map[string]int{}}
	for _, name := range []string{"vocab_size", "hidden_size", "dim", "intermediate_size", "hidden_dim", "num_hidden_layers", "n_layers", "num_attention_heads", "n_heads",
		"num_key_value_heads", "max_position_embeddings"} {
		if c.has(name) {
			d.Sizes[name] = c.size(name, 0)
		}
	}
	by := map[string]int64{}
	for name, t := range b.tensors {
		if numbers[t.DType].read == nil || strings.HasSuffix(name, positionIDs) {
			continue // a constant of transformers
		}
		d.Tensors++
		n := int64(1)
		for _, size := range t.Dims {
			n *= int64(size)
		}
		d.Parameters += n
		d.Bytes += n * int64(t.DType.Bits()) / 8
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
	for _, of := range []task{classification, tokens, answers, maskedLM, causalLM} {
		classes := map[task]int{classification: len(b.labels), tokens: len(b.labels), answers: 2}[of]
		f, err := b.describe(max(1, classes))
		if err != nil {
			continue // Open has made one
		}
		h := f.heads[of]
		if h.build == nil || h.err != nil || b.lacks(f, of, h) != nil {
			continue
		}
		if d.Heads = append(d.Heads, f.class+string(of)); of == classification || of == tokens {
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
	d.Tokenizer, d.Tokens, d.Chat = of.Model.Type, t.Size(), t.ChatTemplate() != ""
	return err
}

func (d *Description) sentences(b *Base) error {
	c, err := readConfig(b.folder, "sentence_bert_config.json", mostText)
	if err == nil {
		if c.has("max_seq_length") {
			d.Longest = c.size("max_seq_length", 0)
		}
		err = c.err
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
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
	row("model", append([]string{d.Type}, d.Classes...)...)
	row("heads", cmp.Or(strings.Join(d.Heads, ", "), "none"))
	var sizes []string
	for _, name := range slices.Sorted(maps.Keys(d.Sizes)) {
		sizes = append(sizes, fmt.Sprintf("%s %d", name, d.Sizes[name]))
	}
	row("sizes", sizes...)
	row("weights", fmt.Sprintf("%d parameters in %d tensors, %.1f MB of %s", d.Parameters, d.Tensors, float64(d.Bytes)/1e6, strings.Join(d.DTypes, " and ")))
	row("labels", d.Labels...)
	row("problem", d.Problem)
	row("pooling", d.Pooling...)
	if d.Longest > 0 {
		row("longest", fmt.Sprintf("%d tokens of an embedded text", d.Longest))
	}
	tokenizer := "none"
	if d.Tokenizer != "" {
		tokenizer = fmt.Sprintf("%s of %d tokens, %s", d.Tokenizer, d.Tokens, map[bool]string{true: "with a chat template", false: "without a chat template"}[d.Chat])
	}
	row("tokenizer", tokenizer)
	for _, reason := range d.Refused {
		row("refused", reason)
	}
	table.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}
