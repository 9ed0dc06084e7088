package pretrained

import "github.com/lazo-ml/lazo/data/text"

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
