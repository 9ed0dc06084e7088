package callbacks

import (
	"io"

	"github.com/lazo-ml/lazo/loop"
)

// NewBar makes the bar of a run without the goroutine that shows waits.
func NewBar(w io.Writer, settings ...Bar) loop.Attendant { return newBar(w, joinedBar(settings)) }

// Coloured has a bar write colours.
var Coloured = Bar{drawing: func(b *bar) { b.coloured = true }}

// Terminal makes a bar draw on any writer as on a terminal of this width.
func Terminal(columns func() int) Bar {
	return Bar{drawing: func(b *bar) { b.live, b.terminal = true, func() (int, bool) { return columns(), true } }}
}
