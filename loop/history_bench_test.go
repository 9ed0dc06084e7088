package loop_test

import (
	"context"
	"testing"

	"github.com/lazo-ml/lazo/loop"
)

func forever(yield func(int, error) bool) {
	for yield(1, nil) {
	}
}

func threeLogs(_ context.Context, s, n int) (int, loop.Logs, error) {
	var logs loop.Logs
	logs.Loss("loss", float64(s))
	logs.Metric("accuracy", float64(n))
	logs.Metric("rate", 0.125)
	return s + n, logs, nil
}

func BenchmarkKeptTurn(b *testing.B) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(threeLogs)))
	b.ReportAllocs()
	result, err := l.Run(context.Background(), 0, loop.Data[int](forever), loop.Until(loop.Steps(b.N)))
	if err != nil || result.History.Len() != b.N {
		b.Fatal(err, result.State)
	}
}

func BenchmarkUnkeptTurn(b *testing.B) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(threeLogs)))
	b.ReportAllocs()
	_, err := l.Run(context.Background(), 0, loop.Data[int](forever), loop.Until(loop.Steps(b.N)), loop.Keep(loop.Schedule{}))
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkLimitedTurn(b *testing.B) {
	l := loop.New(loop.On(loop.EachStep, loop.StepFunc(threeLogs)))
	b.ReportAllocs()
	_, err := l.Run(context.Background(), 0, loop.Data[int](forever), loop.Until(loop.Steps(b.N)), loop.Thin(1000))
	if err != nil {
		b.Fatal(err)
	}
}
