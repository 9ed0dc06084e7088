package flaxlike

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lazo-ml/lazo/metrics"
)

// variable is one of the network.
type variable struct {
	name      string
	shape     metrics.Shape
	trainable bool
}

// ErrNotBuilt is wrapped by the error about a model that has met no batch yet, so that its shapes are not known.
var ErrNotBuilt = errors.New("the model has no variables before its first batch")

func (m *Model) built() error {
	if len(m.seen.variables) == 0 {
		return fmt.Errorf("%w: call Init with a batch of the shapes to come", ErrNotBuilt)
	}
	return nil
}

// Summary writes a table of the network's variables with their shapes, and how many numbers they are.
func (m *Model) Summary(w io.Writer) error {
	if err := m.built(); err != nil {
		return fmt.Errorf("flaxlike: summary: %w", err)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "variable\tshape\tnumbers")
	var trained, fixed, bytes int
	for _, v := range m.seen.variables {
		note := ""
		if v.trainable {
			trained += v.shape.Size()
		} else {
			fixed += v.shape.Size()
			note = "\tnot trained"
		}
		bytes += int(v.shape.Memory())
		fmt.Fprintf(table, "%s\t%s %v\t%d%s\n", strings.TrimPrefix(v.name, "/"+scope+"/"), v.shape.DType, v.shape.Dimensions, v.shape.Size(), note)
	}
	fmt.Fprintf(table, "trained: %d, not trained: %d, together %d bytes\n", trained, fixed, bytes)
	return table.Flush()
}
