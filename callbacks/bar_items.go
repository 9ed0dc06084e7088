package callbacks

import (
	"slices"
	"strings"
)

// item is a part of a line, which is shown whole or not at all.
type item struct {
	text, style string
	// rank says what goes first where a line is too narrow: the highest; 0 stays the longest.
	rank  int
	share float64 // of a drawing
	tight bool    // only a space before it
}

// The ranks of items. Figures have two each, one for those of steps and one for those of the ends of epochs.
const (
	rankFirst   = 1 + iota // the loss, and the loss in validation
	_                      //
	rankLeft               // the time left
	rankDone               // how much of the epoch is done, as a number
	rankDrawing            // and as a drawing
	rankOthers             // the other figures
	rankRate    = 1 << 30
)

// The styles of items, as ECMA-48 numbers them.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

const (
	between = " - "
	// fewestCells is how short a drawing may become, cells how long.
	fewestCells = 8
	// clearBelow returns to the start of the line, and clears from there to the end of the screen: a terminal that was
	// made narrower may have put a line on several.
	clearBelow = "\r\x1b[J"
)

func drawing(share float64, cells int) string {
	full := int(float64(cells) * share)
	return "[" + strings.Repeat("=", full) + strings.Repeat(".", cells-full) + "]"
}

func (i item) before() string {
	if i.tight {
		return " "
	}
	return between
}

// painted is the text of an item in its style.
func (i item) painted(coloured bool) string {
	if !coloured || i.style == "" {
		return i.text
	}
	return "\x1b[" + i.style + "m" + i.text + "\x1b[0m"
}

// drawn is a line that is drawn over the last one, of as many items as fit. The cursor stays at its start: where a
// terminal is made narrower and puts the line on several, the cursor is still at the first of them. And the terminal
// does not wrap, because it may have been made narrower since its width was asked for.
func drawn(items []item, columns int, coloured bool) string {
	items = fitting(items, columns)
	if i := slices.IndexFunc(items, func(i item) bool { return i.rank == rankDrawing }); i >= 0 {
		items[i].text = drawing(items[i].share, min(cells, fewestCells+columns-widthOf(items)))
	}
	var s strings.Builder
	s.WriteString("\r\x1b[?7l")
	for i, it := range items {
		if i > 0 {
			s.WriteString(it.before())
		}
		s.WriteString(it.painted(coloured))
	}
	s.WriteString("\x1b[J\x1b[?7h\r")
	return s.String()
}

// fitting are the items without those of the highest ranks that do not fit.
func fitting(items []item, columns int) []item {
	items = slices.Clone(items)
	for len(items) > 0 && widthOf(items) > columns {
		last := 0
		for i := range items {
			if items[i].rank >= items[last].rank {
				last = i
			}
		}
		items = slices.Delete(items, last, last+1)
	}
	return items
}

func widthOf(items []item) (columns int) {
	for i, it := range items {
		if columns += width(it.text); i > 0 {
			columns += len(it.before())
		}
	}
	return columns
}

// wrapped is all items on as many lines as it takes, those behind the first one indented.
func wrapped(items []item, columns int, coloured bool) string {
	indent := width(items[0].text) + len(between)
	for _, it := range items {
		if it.tight || indent+width(it.text) > columns {
			indent = 2
		}
	}
	var s strings.Builder
	used := 0
	for i, it := range items {
		if i > 0 {
			if used += len(it.before()); used+width(it.text) > columns {
				s.WriteString("\n" + strings.Repeat(" ", indent))
				used = indent
			} else {
				s.WriteString(it.before())
			}
		}
		used += width(it.text)
		s.WriteString(it.painted(coloured))
	}
	return s.String()
}
