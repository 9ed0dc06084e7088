package callbacks_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

// Outside a terminal the bar writes plain lines. By hand, the reports can come from anywhere.
func ExampleProgressBar_byHand() {
	bar, err := callbacks.ProgressBar(os.Stdout).Start(loop.Beginning{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var report loop.Report
	for step := int64(1); step <= 100; step++ {
		report = loop.Report{Until: loop.Steps(100), Elapsed: loop.Elapsed{Steps: step, Samples: 32 * step, Time: time.Duration(step) * time.Second}}
		report.Logs.Loss("loss", 1/float64(step))
		if err := bar.Watch(context.Background(), report); err != nil {
			fmt.Println(err)
		}
		if step == 20 {
			break
		}
	}
	fmt.Println(bar.End(context.Background(), loop.Ending{Report: report}))
	// Output:
	//   1/100 - loss: 1.0000
	//  10/100 - ETA 1m30s - loss: 0.1000 - 32 examples/s
	//  20/100 - ETA 1m20s - loss: 0.0500 - 32 examples/s
	//  20/100 - 20s - loss: 0.0500 - 32 examples/s
	// <nil>
}

// A bar that shows the losses alone.
func ExampleProgressBar() {
	training := loop.New(loop.On(loop.EachStep, loop.StepFunc(add)))
	result, err := training.Run(context.Background(), 0, numbers(1000), loop.Until(loop.Steps(1000)),
		callbacks.ProgressBar(os.Stderr, callbacks.Bar{Shows: []loop.Collection{loop.Losses}}, callbacks.Bar{Off: true}))
	fmt.Println(result.State, err)
	// Output:
	// 499500 <nil>
}

// A file and a tracker, neither of which delays a step.
func ExampleBackground() {
	dir, err := os.MkdirTemp("", "run")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	sent := 0
	send := func(_ context.Context, r loop.Report) error {
		time.Sleep(time.Microsecond) // a server, far away
		sent++
		return nil
	}
	path := filepath.Join(dir, "run.jsonl")
	background := callbacks.Background{Queue: 1000, Dropped: func(watcher string, n int64) { fmt.Println(watcher, "missed", n) }}
	result, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(context.Background(), 0, numbers(100),
		background.Of(callbacks.JSONL(path, loop.EachStep)), background.Of(loop.Watch(loop.Every(loop.Steps(10)), send)))
	lines, readErr := os.ReadFile(path)
	fmt.Println(result.Elapsed.Steps, sent, strings.Count(string(lines), "\n"), err, readErr)
	// Output:
	// 100 10 100 <nil> <nil>
}

func ExampleTiming() {
	fmt.Print(callbacks.Timing{Total: 10 * time.Second, Steps: 1000, Samples: 64_000, Parts: []callbacks.Part{
		{Name: "data", Calls: 1001, Total: time.Second, Longest: 5 * time.Millisecond, First: time.Millisecond},
		{Kind: "task", Name: "each step: train", Calls: 1000, Total: 9 * time.Second, Longest: 2 * time.Second, First: 2 * time.Second},
	}})
	// Output:
	// 10s: 1000 steps (100.0 a second), 64000 samples (6400.0 a second)
	// part                   share  total  calls  first  mean    longest
	// data                   10.0%  1s     1001   1ms    999µs   5ms
	// task each step: train  90.0%  9s     1000   2s     7.01ms  2s
}

// How fast a loop goes, as entries of its history.
func ExampleLogThroughput() {
	training := loop.New(
		loop.On(loop.EachStep, loop.StepFunc(add)),
		callbacks.LogThroughput[int, int](loop.Every(loop.Steps(50))))
	result, err := training.Run(context.Background(), 0, numbers(100))
	at, rates, seriesErr := result.History.Series("samples_per_second")
	fmt.Println(len(at), rates[0] > 0, err, seriesErr)
	// Output:
	// 2 true <nil> <nil>
}

func ExampleLogProgress_byHand() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	progress, err := callbacks.LogProgress(logger, loop.EachStep).Start(loop.Beginning{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, step := range []int64{0, 400, 800} {
		e := loop.Elapsed{Steps: step, Time: time.Duration(step) * 10 * time.Second}
		if err := progress.Watch(context.Background(), loop.Report{Elapsed: e, Until: loop.Steps(1000)}); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// level=INFO msg="0.1 steps/s, 40.0% (400/1000), ETA: 1h40m" elapsed.steps=400 steps_per_second=0.1
	// level=INFO msg="0.1 steps/s, 80.0% (800/1000), ETA: 33m" elapsed.steps=800 steps_per_second=0.1
}

func ExampleHeartbeat() {
	file, err := os.CreateTemp("", "steps")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.Remove(file.Name())
	_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(context.Background(), 0, numbers(100), callbacks.Heartbeat(file.Name(), loop.Every(loop.Steps(50))))
	lines, readErr := os.ReadFile(file.Name())
	for line := range strings.Lines(string(lines)) {
		_, steps, _ := strings.Cut(strings.TrimSpace(line), ",")
		fmt.Println(steps)
	}
	fmt.Println(err, readErr, file.Close())
	// Output:
	// step_number:50
	// step_number:100
	// <nil> <nil> <nil>
}

func ExampleProfile() {
	dir, err := os.MkdirTemp("", "profile")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	_, err = loop.New(loop.On(loop.EachStep, loop.StepFunc(add))).Run(context.Background(), 0, numbers(100), callbacks.Profile(dir, loop.Steps(50), loop.Steps(10)))
	files, readErr := os.ReadDir(dir)
	for _, f := range files {
		fmt.Println(f.Name())
	}
	fmt.Println(err, readErr)
	// Output:
	// cpu.pprof
	// heap.pprof
	// time.pprof
	// trace.out
	// <nil> <nil>
}
