// Command scale estimates training on many ranks from measured sums of 2 to 8 ranks, jobs of 16 to 256 processes
// (scripts/bench_scale.sh), lazo plan, and vendors' data.
//
//	go run ./cmd/bench/scale           # prints its tables
//	go run ./cmd/bench/scale -write    # writes them to testdata/tables.txt, which docs/maintain/scale.md explains
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	folder := flag.String("folder", "cmd/bench/scale/testdata", "the `folder` of measured.jsonl, models.tsv and networks.tsv")
	write := flag.Bool("write", false, "write the tables to tables.txt in the folder, in place of printing them")
	cores := flag.Int("cores", 32, "processors of a host of the estimates, each as fast as one of the machine that measured")
	flag.Parse()
	if err := run(*folder, *cores, *write); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(folder string, cores int, write bool) error {
	list, err := tables(folder, cores)
	if err != nil {
		return err
	}
	if write {
		return os.WriteFile(filepath.Join(folder, "tables.txt"), []byte(printed(list)), 0o644)
	}
	_, err = fmt.Print(printed(list))
	return err
}

type table struct{ name, text string }

func printed(list []table) string {
	var b strings.Builder
	for _, t := range list {
		fmt.Fprintf(&b, "%s\n\n%s\n", t.name, t.text)
	}
	return b.String()
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
