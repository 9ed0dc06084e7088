package callbacks

import (
	"slices"
	"strings"
)

type item struct {
	text, style string
	// In a narrow line the highest rank is removed first.
	rank  int
	share float64
	tight bool
}

const (
	rankFirst = 1 + iota
	_
	rankLeft
	rankDone
	rankDrawing
	rankOthers
	rankRate = 1 << 30
)

const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

const (
	between     = " - "
	fewestCells = 8
	// clearBelow clears to the end of the screen: a narrowed terminal may have wrapped the line.
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

func (i item) painted(coloured bool) string {
	if !coloured || i.style == "" {
		return i.text
	}
	return "\x1b[" + i.style + "m" + i.text + "\x1b[0m"
}

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
