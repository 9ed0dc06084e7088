package pretrained

import (
	"context"
	"slices"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/text"
)

// Programs returns the number of compiled programs: for prompts, tokens and beams.
func (g *Generator) Programs() [3]int {
	return [3]int{len(g.prompt.StableHLO()), len(g.token.StableHLO()), len(g.beams.StableHLO())}
}

// Logits returns those after prompts and after each of further tokens: [prompts][1 + tokens] rows.
func (g *Generator) Logits(ctx context.Context, prompts, tokens [][]int32) ([][][]float32, error) {
	texts, all := make([]*continued, len(prompts)), make([][][]float32, len(prompts))
	for i, p := range prompts {
		texts[i] = &continued{ids: p}
	}
	logits, err := g.begin(ctx, texts, 1)
	for n := 0; err == nil; n++ {
		ids, positions := make([]int32, g.rows), make([]int32, g.rows)
		for i := range prompts {
			all[i] = append(all[i], slices.Clone(row(logits, i)))
			if n < len(tokens[0]) {
				ids[i], positions[i] = tokens[i][n], int32(len(prompts[i])+n)
			}
		}
		if n == len(tokens[0]) {
			break
		}
		logits, err = g.logits(ctx, g.token, ids, data.Named(positionInput, positions, g.rows))
	}
	return all, err
}

// Decoded returns the texts of tokens after a prompt, and how many of them there are before one of stops.
func Decoded(t *text.Tokenizer, stops []string, prompt, ids []int32) (pieces []string, err error) {
	d, err := newDecoding(t, stops, prompt)
	for i, id := range ids {
		end, stopped, piece := "", false, ""
		if i == len(ids)-1 {
			end = endLength
		}
		if err == nil {
			piece, stopped, err = d.add(id, end)
			pieces = append(pieces, piece)
		}
		if stopped || err != nil {
			break
		}
	}
	return pieces, err
}

// Row is a row of a network's tables.
type Row struct {
	Name, Own  string
	Transposed bool
}

// Rows returns the rows with the names that Save writes.
func (n *Network) Rows() (rows []Row) {
	for _, w := range n.weights {
		rows = append(rows, Row{n.savedName(w), w.own, w.transposed})
	}
	return rows
}

// AdapterRows returns the rows with the names that SaveAdapter writes.
func (n *Network) AdapterRows() (rows []Row) {
	for _, w := range n.adapter.weights {
		rows = append(rows, Row{adapterPrefix + n.adapterName(w), w.own, w.transposed})
	}
	for _, w := range n.weights {
		if n.adapter.trained[w.own] {
			rows = append(rows, Row{adapterPrefix + n.savedName(w), w.own, w.transposed})
		}
	}
	return rows
}

// Class returns transformers' name of the network's class.
func (n *Network) Class() string { return n.family.class + string(n.task) }

// GGUFRows returns rows of a tensor of a GGUF file.
func GGUFRows(path, name string, from, to int) ([]byte, error) {
	g, err := readGGUF(path)
	if err != nil {
		return nil, err
	}
	return g.tensors[name].rows(from, to)
}

// GGUFValue returns a value of a GGUF file's metadata.
func GGUFValue(path, key string) (any, error) {
	g, err := readGGUF(path)
	if err != nil {
		return nil, err
	}
	return g.values[key], nil
}

// GGUFTokenizer returns the tokenizer of a GGUF file that may have no model.
func GGUFTokenizer(path string) (*text.Tokenizer, error) {
	g, err := readGGUF(path)
	if err != nil {
		return nil, err
	}
	return g.tokenizer()
}

// TokenizerFiles returns those that Save writes for a GGUF file's tokenizer.
func TokenizerFiles(t *text.Tokenizer) (map[string][]byte, error) {
	return (&Base{tokenizer: func() (*text.Tokenizer, error) { return t, nil }}).tokenizerFiles()
}

// Rows returns the elements of a tensor of the folder.
func (b *Base) Rows(name string) ([]byte, error) {
	return b.tensors[name].rows(0, b.tensors[name].Dims[0])
}

// Tensors returns the types of the folder's tensors by name.
func (b *Base) Tensors() map[string]string {
	all := map[string]string{}
	for name, t := range b.tensors {
		all[name] = t.DType.String()
	}
	return all
}

// Q8 returns the blocks of numbers.
func Q8(x []float32) ([]byte, error) {
	out := make([]byte, len(x)/32*34)
	for i := range len(x) / 32 {
		if err := q8(x[i*32:][:32], out[i*34:][:34]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var ToHalf = toHalf
