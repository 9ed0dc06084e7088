package callbacks

// Coloured has a bar write colours.
func Coloured(b *Bar) { b.coloured = true }

// Terminal makes a bar draw on any writer as on a terminal with so many columns.
func Terminal(columns func() int) BarOption {
	return func(b *Bar) { b.live, b.terminal = true, func() (int, bool) { return columns(), true } }
}
