//lazo:norace
package examples

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
)

// A panic in a user's function is reported with the user's innermost line, also under the standard library. (Code of
// examples counts as user code.)
func TestPanic_saysItsLine(t *testing.T) {
	batch := data.Batch{Fields: []data.Field{data.X([]float32{1}, 1)}}
	one := loop.Data[data.Batch](func(yield func(data.Batch, error) bool) { yield(batch, nil) })
	step := loop.On(loop.EachStep, loop.StepFunc(func(_ context.Context, s int, _ data.Batch) (int, loop.Logs, error) { return s, loop.Logs{}, nil }))
	none := []float32(nil)
	changed := data.ParallelMap(one.From(0), 2, func(b data.Batch) (data.Batch, error) {
		_ = none[b.Size+3]
		return b, nil
	})
	watch := loop.Watch(loop.EachStep, func(context.Context, loop.Report) error {
		_ = strings.Repeat("x", -1)
		return nil
	})
	for name, row := range map[string]struct {
		from    loop.Data[data.Batch]
		options []loop.Option
		want    string
	}{
		"a function of the data": {loop.Data[data.Batch](changed), nil, `^loop: step 1: data: parallel map: the function: panic: examples/panic_test\.go:\d+: runtime error: index out of range \[\d+\] with length 0$`},
		"a callback":             {one, []loop.Option{watch}, `^loop: step 1: each step: panic: examples/panic_test\.go:\d+: strings: negative Repeat count$`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loop.New(step).Run(t.Context(), 0, row.from, row.options...)
			require.Error(t, err)
			require.Regexp(t, row.want, err.Error())
			var p *loop.PanicError
			require.ErrorAs(t, err, &p)
			require.Contains(t, err.Error(), p.Where)
		})
	}
}
