// Command bench measures how fast Parquet files are read: one JSON line for each result, as cmd/bench.
//
//	cd data/parquet && go run ./bench -variant numbers,classes
//
// The file has 200,000 rows of 20 columns, packed by snappy: plain float32, or in classes 19 with a dictionary and
// one of texts.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/lazo-ml/lazo/data/parquet"
)

const (
	numbers, classes = "numbers", "classes"
	columns          = 20
)

var kinds = []string{"setosa", "versicolor", "virginica"}

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type line struct {
	Workload string    `json:"workload"`
	Impl     string    `json:"impl"`
	Variant  string    `json:"variant"`
	Unit     string    `json:"unit"`
	Median   float64   `json:"median"`
	Min      float64   `json:"min"`
	Max      float64   `json:"max"`
	N        int       `json:"n"`
	Values   []float64 `json:"values"`
	CPU      []float64 `json:"cpu_s"`
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	variants := flags.String("variant", numbers+","+classes, "comma-separated `names`")
	repeats := flags.Int("repeats", 5, "measured repeats, after a warm-up")
	rows := flags.Int("rows", 200_000, "rows of the file")
	dir := flags.String("data", "", "the `folder` in which the files are found, or written (default: a temporary one)")
	turns := flags.Bool("turns", false, "before each repeat, print \"ready\" and wait for a line on standard input")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *repeats < 1 || *rows < 1 || flags.NArg() > 0 {
		return fmt.Errorf("-repeats and -rows must be positive, no other arguments: got %q", args)
	}
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "lazo-bench-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(*dir)) }()
	}
	lines := bufio.NewScanner(stdin)
	for variant := range strings.SplitSeq(*variants, ",") {
		if variant != numbers && variant != classes {
			return fmt.Errorf("unknown variant %q, expected %s or %s", variant, numbers, classes)
		}
		path := filepath.Join(*dir, "parquet-"+variant, "table.parquet")
		if _, err := os.Stat(path); err != nil {
			if err := write(path, variant, *rows); err != nil {
				return err
			}
		}
		l := line{Workload: "parquet", Impl: "lazo", Variant: variant, Unit: "examples/s", N: *repeats}
		for i := -1; i < *repeats; i++ {
			if *turns && i >= 0 {
				fmt.Fprintln(stdout, "ready")
				if !lines.Scan() {
					return errors.Join(errors.New("-turns: standard input ended before the last repeat"), lines.Err())
				}
			}
			cpu, begin := cpuSeconds(), time.Now()
			n, err := read(path, variant)
			if err != nil {
				return err
			}
			if i >= 0 {
				l.Values = append(l.Values, float64(n)/time.Since(begin).Seconds())
				l.CPU = append(l.CPU, cpuSeconds()-cpu)
			}
		}
		sorted := slices.Sorted(slices.Values(l.Values))
		l.Min, l.Median, l.Max = sorted[0], sorted[len(sorted)/2], sorted[len(sorted)-1]
		if err := json.NewEncoder(stdout).Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func read(path, variant string) (int, error) {
	format := parquet.Format{}
	if variant == classes {
		format.Fields = []parquet.Field{{Name: "x"}, {Name: "y", Columns: []string{"c19"}, Classes: kinds}}
	}
	set, err := parquet.Open(path, format)
	if err != nil {
		return 0, err
	}
	return set.Len(), nil
}

func write(path, variant string, rows int) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	schema := pq.Group{}
	for c := range columns {
		node := pq.Leaf(pq.FloatType)
		switch {
		case variant == classes && c == columns-1:
			node = pq.Encoded(pq.String(), &pq.RLEDictionary)
		case variant == classes:
			node = pq.Encoded(node, &pq.RLEDictionary)
		}
		schema[fmt.Sprintf("c%02d", c)] = pq.Optional(node) // as pyarrow's columns are
	}
	file, err := os.Create(path + ".part")
	if err != nil {
		return err
	}
	w := pq.NewWriter(file, pq.NewSchema("table", schema), pq.Compression(&pq.Snappy))
	r := rand.New(rand.NewPCG(0, 0))
	for range rows {
		row := make(pq.Row, columns)
		for c := range row {
			v := pq.FloatValue(float32(r.NormFloat64()))
			if variant == classes {
				if v = pq.FloatValue(float32(r.IntN(1000)) / 8); c == columns-1 {
					v = pq.ByteArrayValue([]byte(kinds[r.IntN(len(kinds))]))
				}
			}
			row[c] = v.Level(0, 1, c)
		}
		if _, err := w.WriteRows([]pq.Row{row}); err != nil {
			return errors.Join(err, file.Close())
		}
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for no process of its own
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
