package plots

import (
	"errors"
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
)

// Table is a figure that only pages have: a head and rows of any text. Columns of numbers are aligned to the right.
func Table(title string, head []string, rows ...[]string) *Figure {
	f := &Figure{title: title, table: append([][]string{slices.Clone(head)}, rows...)}
	if len(head) == 0 || len(rows) == 0 {
		return failed(title, errors.New("the table has no rows"))
	}
	for i, row := range rows {
		if len(row) != len(head) {
			return failed(title, fmt.Errorf("row %d has %d cells below a head of %d", i, len(row), len(head)))
		}
	}
	return f
}

func (f *Figure) drawable() error {
	if f.err == nil && len(f.panels) == 0 {
		return fmt.Errorf("plots: %s: it is a table: write HTML", f.title)
	}
	return f.err
}

func numeric(rows [][]string, column int) bool {
	for _, row := range rows[1:] {
		if _, err := strconv.ParseFloat(strings.TrimSuffix(row[column], "%"), 64); err != nil && row[column] != "" {
			return false
		}
	}
	return true
}

func long(rows [][]string, column int) bool {
	return slices.ContainsFunc(rows[1:], func(row []string) bool { return len(row[column]) > 20 })
}

func table(rows [][]string) string {
	var s strings.Builder
	s.WriteString("<div class=\"rows\"><table>\n")
	cell := "th"
	for _, row := range rows {
		s.WriteString("<tr>")
		for k, text := range row {
			of, class := cell, ""
			if k == 0 {
				of = "th"
			} else if numeric(rows, k) {
				class = " class=\"number\""
			} else if long(rows, k) {
				class = " class=\"text\""
			}
			fmt.Fprintf(&s, "<%s%s>%s</%[1]s>", of, class, html.EscapeString(clean(text)))
		}
		s.WriteString("</tr>\n")
		cell = "td"
	}
	s.WriteString("</table></div>\n")
	return s.String()
}
