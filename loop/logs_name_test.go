package loop_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/loop"
)

func TestLogs_lookUp(t *testing.T) {
	var logs loop.Logs
	logs.Loss("loss", 1, loop.Metrics)
	logs.Metric("loss", 2)
	logs.Metric("accuracy", 3)
	logs.Set("layer", "1.norm", 4)
	logs.Set("other", "layer.1.norm", 5)
	const all = "losses.loss, metrics.loss, metrics.accuracy, layer.1.norm, other.layer.1.norm"
	for _, row := range []struct {
		name string
		want float64
		err  string
		is   error
	}{
		{name: "accuracy", want: 3},
		{name: "metrics.accuracy", want: 3},
		{name: "losses.loss", want: 1},
		{name: "metrics.loss", want: 2},
		{name: "1.norm", want: 4},
		{name: "layer.1.norm", want: 4}, // a full name goes before a short one
		{name: "other.layer.1.norm", want: 5},
		{name: "loss", err: `loop: ambiguous name: "loss"; use one of: losses.loss, metrics.loss`},
		{name: "acuracy", is: loop.ErrNoEntry, err: `loop: no such entry: "acuracy" (did you mean metrics.accuracy?); there are: ` + all},
		{name: "losses.los", is: loop.ErrNoEntry, err: `loop: no such entry: "losses.los" (did you mean losses.loss?); there are: ` + all},
		{name: "Accuracy", is: loop.ErrNoEntry, err: `loop: no such entry: "Accuracy" (did you mean metrics.accuracy?); there are: ` + all},
		{name: "perplexity", is: loop.ErrNoEntry, err: `loop: no such entry: "perplexity"; there are: ` + all},
		{name: "loxxxx", is: loop.ErrNoEntry, err: `loop: no such entry: "loxxxx"; there are: ` + all}, // one letter further than is near
		{name: "losses.accuracy", is: loop.ErrNoEntry, err: `loop: no such entry: "losses.accuracy" (did you mean metrics.accuracy?); there are: ` + all},
		{name: "", is: records.ErrName, err: `loop: malformed name: ""; want name or collection.name, there are: ` + all},
		{name: "losses.", is: records.ErrName, err: `loop: malformed name: "losses."; want name or collection.name, there are: ` + all},
		{name: ".loss", is: records.ErrName, err: `loop: malformed name: ".loss"; want name or collection.name, there are: ` + all},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := logs.Float(row.name)
			if row.err != "" {
				require.EqualError(t, err, row.err)
				require.True(t, row.is == nil || errors.Is(err, row.is))
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
	_, err := (loop.Logs{}).Get("x")
	require.EqualError(t, err, `loop: no such entry: "x"; there are: none`)
}
