package managed

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is text in columns. A title that begins with ">" is that of a column of numbers, which end at its right edge.
type table [][]string

func (t table) String() string {
	widths, right := make([]int, len(t[0])), make([]bool, len(t[0]))
	for i, title := range t[0] {
		title, right[i] = strings.CutPrefix(title, ">")
		t[0][i] = title
		for _, row := range t {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var all strings.Builder
	for _, row := range t {
		var line strings.Builder
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if right[i] {
				line.WriteString(space + cell + "  ")
			} else {
				line.WriteString(cell + space + "  ")
			}
		}
		all.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return all.String()
}

// grouped writes a number with commas between the thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
