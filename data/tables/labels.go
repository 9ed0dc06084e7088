package tables

import (
	"math"

	"github.com/lazo-ml/lazo/data"
)

type classLabel struct {
	source
	classList
}

func (*classLabel) label() bool    { return true }
func (*classLabel) integers() bool { return true }

func (c *classLabel) check() error { return c.index(c.As) }

func (c *classLabel) convert(columns []data.Array, to cells) error {
	texts, err := textsOf(columns[0])
	for i, text := range texts {
		n, known := c.number[text]
		switch {
		case known:
			to.classes[i*to.stride] = n
		case text == "":
			return missingLabel(i)
		default:
			return c.unknown(i, text, "")
		}
	}
	return err
}

func missingLabel(row int) error {
	return rowError(row, "the label is missing: leave such examples out (Set.Where)")
}

// numberLabel is also a label of 0 and 1, or scaled.
type numberLabel struct {
	source
	linear
}

func (*numberLabel) label() bool { return true }

func (c *numberLabel) check() error { return c.linear.check() }

func (c *numberLabel) convert(columns []data.Array, to cells) error {
	read := numbersOf
	if c.As == asFlag {
		read = flagsOf
	}
	values, err := read(columns[0])
	if err != nil {
		return err
	}
	for i, v := range values {
		if math.IsNaN(v) {
			return missingLabel(i)
		}
		learned, err := transformed(c.As, v)
		if err != nil {
			return rowError(i, "%w", err)
		}
		if err := to.put(i, 0, c.scaled(learned), v); err != nil {
			return err
		}
	}
	return nil
}
