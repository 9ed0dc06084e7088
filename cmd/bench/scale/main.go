// Command scale estimates training on many ranks from measured sums of 2 to 8 ranks, jobs of 16 to 256 processes
// (scripts/bench_scale.sh), lazo plan, and vendors' data.
//
//	go run ./cmd/bench/scale           # prints its tables
//	go run ./cmd/bench/scale -write    # writes those that docs/maintain/scale.md has
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	folder := flag.String("folder", "cmd/bench/scale/testdata", "the `folder` of measured.jsonl, models.tsv and networks.tsv")
	document := flag.String("document", "docs/maintain/scale.md", "the `file` with the tables")
	write := flag.Bool("write", false, "write the tables into the document")
	cores := flag.Int("cores", 32, "processors of a host of the estimates, each as fast as one of the machine that measured")
	flag.Parse()
	if err := run(*folder, *document, *cores, *write); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(folder, document string, cores int, write bool) error {
	list, err := tables(folder, cores)
	if err != nil {
		return err
	}
	if !write {
		for _, t := range list {
			fmt.Printf("%s\n\n%s\n", t.name, t.text)
		}
		return nil
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	written, err := put(string(text), list)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	return os.WriteFile(document, []byte(written), 0o644)
}

type table struct{ name, text string }

// printed tables are not in the document.
var printed = []string{"algorithms", "strong"}

// put sets each table between its marks, "<!-- NAME -->" and "<!-- end -->".
func put(document string, list []table) (string, error) {
	for _, t := range list {
		if slices.Contains(printed, t.name) {
			continue
		}
		begin := "<!-- " + t.name + " -->\n"
		const end = "<!-- end -->"
		before, rest, found := strings.Cut(document, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			return "", fmt.Errorf("no place for the table %q: expected %q, followed by %q", t.name, strings.TrimSpace(begin), end)
		}
		document = before + begin + t.text + end + after
	}
	return document, nil
}

func tables(folder string, cores int) ([]table, error) {
	lines, err := readMeasured(filepath.Join(folder, "measured.jsonl"))
	if err != nil {
		return nil, err
	}
	p, err := readPrices(folder, lines, cores)
	if err != nil {
		return nil, err
	}
	var list []table
	for _, t := range []struct {
		name string
		make func() (string, error)
	}{
		{"machine", func() (string, error) { return machineText(lines, p), nil }},
		{"sums", func() (string, error) { return sumsTable(lines) }},
		{"steps", func() (string, error) { return stepsTable(lines) }},
		{"fit", func() (string, error) { return fitTable(lines) }},
		{"control", func() (string, error) { return controlTable(lines) }},
		{"algorithms", func() (string, error) { return algorithmsTable(p), nil }},
		{"weak", func() (string, error) { return weakTable(p) }},
		{"strong", func() (string, error) { return strongTable(p) }},
		{"late", func() (string, error) { return lateTable(p), nil }},
	} {
		text, err := t.make()
		if err != nil {
			return nil, fmt.Errorf("table %q: %w", t.name, err)
		}
		list = append(list, table{t.name, text})
	}
	return list, nil
}
