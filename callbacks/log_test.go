package callbacks_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/loop"
)

func TestLog(t *testing.T) {
	var out bytes.Buffer
	handler := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "elapsed.time" {
			return slog.Attr{}
		}
		return a
	}})
	step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
		if n == 3 {
			return s, loop.Logs{}, nil
		}
		logs := metric("sum", float64(n))
		logs.Loss("b", 0.5)
		logs.Loss("a", 0.25)
		logs.Output("image", []int{n})
		logs.Set(loop.Losses, "c", late{new(int), 0, errors.New("lost")})
		return s, logs, nil
	}
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(6), callbacks.Log(slog.New(handler), loop.Every(loop.Steps(2))))
	require.NoError(t, err)
	require.Equal(t, `level=INFO msg=step elapsed.samples=2 elapsed.steps=2 losses.a=0.25 losses.b=0.5 losses.c=lost metrics.sum=1 outputs.image=[1]
level=INFO msg=step elapsed.samples=6 elapsed.steps=6 losses.a=0.25 losses.b=0.5 losses.c=lost metrics.sum=5 outputs.image=[5]
`, out.String())
}

func TestLog_readsNothingThatNobodySees(t *testing.T) {
	fetched := 0
	step := func(_ context.Context, s, _ int) (int, loop.Logs, error) {
		var logs loop.Logs
		logs.Set(loop.Losses, "loss", late{&fetched, 0, nil})
		return s, logs, nil
	}
	quiet := slog.New(slog.NewTextHandler(&bytes.Buffer{}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, numbers(6), callbacks.Log(quiet, loop.EachStep), callbacks.Log(nil, loop.EachStep))
	require.NoError(t, err)
	require.Zero(t, fetched)
}
