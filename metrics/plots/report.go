package plots

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report is a page about a run.
type Report struct {
	Title string
	Card  []Part
	// Figures are drawn in order. An error of one is the report's error.
	Figures []*Figure
}

// Part is a table of the card.
type Part struct {
	Title string
	Rows  []Row
}

// Row is a table's row with any text.
type Row struct{ Name, Value string }

const reportName = "report.html"

// Save writes the self-contained page report.html into a folder, which it creates.
func (r Report) Save(dir string) error {
	text, err := r.page()
	if err != nil {
		return fmt.Errorf("plots: report: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("plots: report: %w", err)
	}
	return replace(filepath.Join(dir, reportName), []byte(text))
}

func (r Report) page() (string, error) {
	if len(r.Card) == 0 && len(r.Figures) == 0 {
		return "", errors.New("it has no card and no figures")
	}
	if i := slices.Index(r.Figures, nil); i >= 0 {
		return "", fmt.Errorf("figure %d is nil", i)
	}
	var s strings.Builder
	text := func(v string) string { return html.EscapeString(clean(v)) }
	fmt.Fprintf(&s, "<h1>%s</h1>\n", text(r.Title))
	s.WriteString("<div class=\"figures\">\n")
	for _, part := range r.Card {
		fmt.Fprintf(&s, "<section><h2>%s</h2>\n<table>\n", text(part.Title))
		for _, row := range part.Rows {
			fmt.Fprintf(&s, "<tr><th scope=\"row\">%s</th><td>%s</td></tr>\n", text(row.Name), text(row.Value))
		}
		s.WriteString("</table></section>\n")
	}
	s.WriteString("</div>\n<div class=\"figures\">\n")
	for _, f := range r.Figures {
		if err := f.Err(); err != nil {
			return "", err
		}
		s.WriteString(f.section(2))
	}
	s.WriteString("</div>\n")
	return page(r.Title, s.String()), nil
}
