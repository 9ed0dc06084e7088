package pretrained

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
