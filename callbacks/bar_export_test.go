package callbacks

// Coloured has a bar write colours.
var Coloured = Bar{drawing: func(b *bar) { b.coloured = true }}

// Terminal makes a bar draw on any writer as on a terminal with so many columns.
func Terminal(columns func() int) Bar {
	return Bar{drawing: func(b *bar) { b.live, b.terminal = true, func() (int, bool) { return columns(), true } }}
}
