package callbacks_test

import (
	"context"
	"iter"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

func add(_ context.Context, sum, n int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("sum", float64(sum+n))
	return sum + n, logs, nil
}

type attendant struct{ watch, end func() }

func (a *attendant) Watch(context.Context, loop.Report) error {
	if a.watch != nil {
		a.watch()
	}
	return nil
}

func (a *attendant) End(context.Context, loop.Ending) error {
	if a.end != nil {
		a.end()
	}
	return nil
}

// counted is a value that counts how often it is read.
type counted struct{ reads *int }

func (c counted) Float() (float64, error) { *c.reads++; return 1, nil }

// counting is a test step that logs how many batches the state has counted.
func counting(c loop.Collection) loop.Loop[int, int] {
	return loop.New(loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(c, "count", s+1)
		return s + 1, logs, nil
	})))
}

// evaluation logs the state under a name; it changes nothing.
func evaluation(_ context.Context, s, _ int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Metric("evaluated", float64(s))
	return s, logs, nil
}

func forever(yield func(int, error) bool) {
	for yield(1, nil) {
	}
}

// late is a value that has to be fetched, and counts how often.
type late struct {
	fetched *int
	value   float64
	err     error
}

func (l late) Float() (float64, error) { *l.fetched++; return l.value, l.err }

func metric(name string, v float64) (logs loop.Logs) {
	logs.Metric(name, v)
	return logs
}

// rest is a source of the rest of the data, wherever the run begins.
func rest[B any](data loop.Data[B]) loop.Source[B] {
	return loop.From(func(int64) iter.Seq2[B, error] { return iter.Seq2[B, error](data) })
}

// numbers yields 0…n-1. A toy state of one number is all that the loop's tests need.
func numbers(n int) loop.Data[int] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func seconds(n int) loop.Time { return loop.Time(time.Duration(n) * time.Second) }

type sized []int

func (s sized) Samples() int { return len(s) }

var ten = numbers(10)

func threeLogs(_ context.Context, s, n int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Loss("loss", float64(s))
	logs.Metric("accuracy", float64(n))
	logs.Metric("rate", 0.125)
	return s + n, logs, nil
}

func at(steps int64) loop.Elapsed { return loop.Elapsed{Steps: steps, Samples: 10 * steps} }
