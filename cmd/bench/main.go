// Command bench measures lazo and prints one JSON line per result.
//
//	go run ./cmd/bench -workload tiny,mlp,cnn,linear,digits,matmul,predict,serve,ckpt,ttfs,lstm,gpt,generate,images,csv
//
// Workloads, sizes and timing rules are those of the peers' scripts: see docs/maintain/performance.md. With -turns each
// repeat waits for a line on standard input, as scripts/bench_peers.sh sends it.
//
// # Workloads
//
//	tiny       linear, 4 to 1, batch 8, SGD, 10,000 steps in blocks of up to 100, or one by one
//	linear     linear, 784 to 10, batch 32, AdamW, 3,000 steps
//	mlp        784, 512, 512, 10, batch 128, Adam, 117 steps
//	cnn        convolutions of 32 and 64 channels, dense 256, Adam, batch 128 and 32
//	digits     convolutions of 16 and 32 channels over 8 by 8 pixels, dense 64, Adam, batch 32, 10 epochs of 44 steps and
//	           a test; "later seed" compiles nothing
//	matmul     float32 products
//	copy       256 MiB x+1, into new memory or in place
//	inplace    a program changes the given number of small values in place
//	predict    mlp, one example a request, from the given number of goroutines or threads
//	serve      the same by HTTP
//	ttfs       process start to the first step of cnn, without and with a compile cache
//	lstm       32 inputs, 128 units, batch 32, the given number of time steps; the last state to 10 classes
//	gpt        6 layers of width 256, 8 heads, 128 places, 2,048 tokens, batch 16, pre-norm, tied embeddings, 5.3 million
//	           parameters, Adam
//	generate   gpt's model, a cache of 640 places: a prompt of 16, then 512 tokens, each read on the host
//	images     2,000 files of 128 by 128 pixels, resized to 112, cropped to 96, half of them mirrored, batches of 64, two
//	           workers
//	csv        200,000 rows of 20 columns (classes: one is a class) into float32; parquet, of data/parquet/bench, with
//	           snappy
//	ckpt       a checkpoint of 200 MB
//	pretrained files of -data: embed has vectors of 1,024 texts in batches of 32; finetune steps of a classifier, batch
//	           32, 32 tokens; lora steps of rank 8 on all dense layers, batch 4, 64 tokens; generate 64 tokens after 16
//	memory     XLA's bytes of a step next to a floor; peak: what 10 layers under Adam take
//	growth     a step over its variables, batch, devices and number
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/lazo-ml/lazo/xla"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		if errors.As(err, new(usageError)) {
			os.Exit(2)
		}
		if errors.Is(err, errSlower) {
			os.Exit(3)
		}
		os.Exit(1)
	}
}

type usageError struct{ error }

type bench struct {
	plugin   string
	variants []string
	batch    int
	steps    int
	repeats  int
	plot     string
	server   string
	data     string
	over     string
	load     float64
	out      *json.Encoder
	// of check
	history, commit, reference string
	// a line per permitted repeat, after a printed "ready", or nil
	turns  *bufio.Scanner
	stdout io.Writer
	// opened on first use, because ttfs measures opening
	runtime *xla.Runtime
}

var workloads = []struct {
	name string
	run  func(ctx context.Context, b *bench) error
}{
	{"tiny", train("tiny")},
	{"mlp", train("mlp")},
	{"cnn", train("cnn")},
	{"linear", train("linear")},
	{"digits", digits},
	{"fit", fit},
	{"matmul", matmul},
	{"inplace", inPlace},
	{"ckpt", ckpt},
	{"ttfs", timeToFirstStep},
	{"memory", memory},
	{"predict", predict},
	{"serve", serving},
	{"lstm", trainSequences("lstm", lstmSizes())},
	{"gpt", trainSequences("gpt", gptSizes())},
	{"generate", generates(bigGenerator)},
	{"images", imageFiles},
	{"csv", tableFile},
	{"growth", growth},
	{"ranks", ranks},
	{"exchange", exchange},
	{"control", control},
	{"pretrained", pretrainedModels},
}

var notByDefault = []string{"growth", "gpt", "memory", "ranks", "exchange", "control", "pretrained"}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	if len(args) > 0 && args[0] == firstStepChild {
		return firstStep(ctx, args[1:], stdout)
	}
	if len(args) > 0 && args[0] == memoryChild {
		return memoryTrain(ctx, args[1:], stdout)
	}
	if len(args) > 0 && args[0] == serveChild {
		return serveModel(ctx, stdout)
	}
	if len(args) > 0 && args[0] == controlRank {
		return controlProcess(ctx, stdout)
	}
	b := &bench{out: json.NewEncoder(stdout), stdout: stdout, load: machineLoad()}
	var names []string
	for _, w := range workloads {
		names = append(names, w.name)
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	usual := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(notByDefault, name) })
	list := flags.String("workload", strings.Join(usual, ","), "comma-separated `names`; also "+strings.Join(notByDefault, ", "))
	flags.StringVar(&b.plot, "plot", "", "the `file` for the plot of growth or of the history, an SVG")
	variants := flags.String("variant", "", "comma-separated `names` (default: all of a workload)")
	flags.IntVar(&b.batch, "batch", 0, "examples in a step (default: the workload's own)")
	flags.IntVar(&b.steps, "steps", 0, "steps of a repeat (default: the workload's own)")
	flags.IntVar(&b.repeats, "repeats", 5, "measured repeats, after a warm-up")
	flags.StringVar(&b.server, "server", "", "the `command` of a peer's server for serve, which prints its address as http://… when it is ready (default: lazo's)")
	flags.StringVar(&b.data, "data", "", "the `folder` in which images and csv find their files, or write them (default: a temporary one), and pretrained its models")
	flags.StringVar(&b.over, "over", "", "the transport between ranks, a `name` for the lines of exchange (default: shared memory)")
	flags.StringVar(&b.plugin, "plugin", xla.CPU, "cpu, cuda, tpu, or the `path` of a plugin")
	before := flags.String("check", "", "the `path` of an earlier bench: measure a small set in turns with it, and end with 3 if something became slower")
	flags.StringVar(&b.history, "history", "", "the `file` to which -check appends a JSON line a workload")
	flags.StringVar(&b.commit, "commit", "", "the `hash` of this bench in -history")
	flags.StringVar(&b.reference, "reference", "", "the `hash` of the earlier bench in -history")
	turns := flags.Bool("turns", false, "before each repeat, print \"ready\" and wait for a line on standard input")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return usageError{err}
	}
	if *turns {
		b.turns = bufio.NewScanner(stdin)
	}
	if *variants != "" {
		b.variants = strings.Split(*variants, ",")
	}
	if b.batch < 0 || b.steps < 0 || b.repeats < 1 || flags.NArg() > 0 {
		return usageError{fmt.Errorf("-batch, -steps must not be negative, -repeats must be positive, no other arguments: got %q", args)}
	}
	if b.history != "" && (*before == "" || b.commit == "" || b.reference == "") {
		return usageError{fmt.Errorf("-history needs -check, -commit and -reference: got %q", args)}
	}
	if *before != "" {
		now, err := os.Executable()
		if err != nil {
			return err
		}
		return check(ctx, b, [2]string{*before, now})
	}
	chosen := strings.Split(*list, ",")
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return usageError{fmt.Errorf("unknown workload %q; known are: %s", name, strings.Join(names, ", "))}
		}
	}
	defer func() {
		if b.runtime != nil {
			err = errors.Join(err, b.runtime.Close())
		}
	}()
	for _, w := range workloads {
		if !slices.Contains(chosen, w.name) {
			continue
		}
		if err := w.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

func (b *bench) wants(variant string) bool {
	return len(b.variants) == 0 || slices.Contains(b.variants, variant)
}

func (b *bench) open(ctx context.Context, options ...xla.Option) (*xla.Runtime, error) {
	if b.runtime != nil {
		return b.runtime, nil
	}
	options = append(options, xla.InstallIfMissing(func(line string) { fmt.Fprintln(os.Stderr, line) }))
	r, err := xla.Open(ctx, b.plugin, options...)
	b.runtime = r
	return r, err
}

type line struct {
	Workload string            `json:"workload"`
	Impl     string            `json:"impl"`
	Variant  string            `json:"variant"`
	Unit     string            `json:"unit"`
	Median   float64           `json:"median"`
	Min      float64           `json:"min"`
	Max      float64           `json:"max"`
	N        int               `json:"n"`
	Values   []float64         `json:"values"`
	CPU      []float64         `json:"cpu_s,omitempty"` // processor seconds per repeat
	Mean     float64           `json:"mean,omitempty"`
	Batch    int               `json:"batch,omitempty"`
	Steps    int               `json:"steps,omitempty"`
	Epochs   int               `json:"epochs,omitempty"`
	PerS     int               `json:"examples_per_s,omitempty"`
	FirstS   float64           `json:"first_s,omitempty"`
	WarmS    float64           `json:"warm_s,omitempty"`
	MB       int               `json:"mb,omitempty"`
	Floor    float64           `json:"floor_s,omitempty"`
	Ratio    float64           `json:"ratio,omitempty"` // Min/Floor; in exchange, Median/Floor
	Ranks    int               `json:"ranks,omitempty"`
	Bytes    int               `json:"bytes,omitempty"` // per rank and sum
	CPUs     int               `json:"cpus,omitempty"`  // shared by all ranks
	Over     string            `json:"over,omitempty"`  // transport
	MPI      string            `json:"mpi,omitempty"`
	Load     float64           `json:"load,omitempty"`
	RSSMB    int               `json:"rss_mb,omitempty"`
	P50      float64           `json:"p50_us,omitempty"` // of the last repeat
	P99      float64           `json:"p99_us,omitempty"`
	Versions map[string]string `json:"versions"`
}

func (b *bench) emit(l line, values []float64) error {
	sorted := slices.Sorted(slices.Values(values))
	l.Impl, l.N = cmp.Or(l.Impl, "lazo"), len(values)
	l.Min, l.Max = sorted[0], sorted[len(sorted)-1]
	l.Median = medianOf(values)
	for _, v := range values {
		short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 4, 64), 64)
		l.Values = append(l.Values, short)
	}
	if l.Unit == "steps/s" {
		l.PerS = int(l.Median * float64(l.Batch))
	}
	l.Versions = versions()
	return b.out.Encode(l)
}

func medianOf(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func versions() map[string]string {
	v := map[string]string{"go": runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			switch d.Path {
			case "github.com/gomlx/gomlx", "github.com/gomlx/go-xla":
				v[d.Path[strings.LastIndex(d.Path, "/")+1:]] = d.Version
			}
		}
	}
	return v
}
