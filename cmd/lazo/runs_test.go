package main_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/loop"
)

type counted struct{ N int64 }

func (c *counted) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{"n": c.N}}, nil
}

func (c *counted) Restore(_ context.Context, of *checkpoint.Checkpoint) error {
	return of.Section("n", &c.N)
}

// recordedRuns has the runs lr/0.01, lr/0.1 and lr/1, of which the last failed, and log.jsonl.
func recordedRuns(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	train := func(factor float64, steps int, fails error, options ...loop.Option) {
		step := func(_ context.Context, s *counted, _ int) (*counted, loop.Logs, error) {
			s.N++
			var logs loop.Logs
			logs.Loss("loss", factor/float64(s.N))
			logs.Metric("accuracy", 1-factor/8)
			return s, logs, nil
		}
		batches := loop.Data[int](func(yield func(int, error) bool) {
			for i := range steps {
				if !yield(i, nil) {
					return
				}
			}
			if fails != nil {
				yield(0, fails)
			}
		})
		_, err := loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), &counted{}, batches, options...)
		require.ErrorIs(t, err, fails)
	}
	saved := func(rate string, opt string) loop.Option {
		return checkpoint.Resume(filepath.Join(dir, "lr", rate), checkpoint.Options{Same: map[string]any{"rate": rate, "optimizer": opt, "layers": 2}}, checkpoint.Every(loop.Steps(2)))
	}
	train(2, 8, nil, saved("0.01", "sgd"))
	train(1, 4, nil, saved("0.1", "adam"))
	train(4, 2, fmt.Errorf("<b>bad</b>\x1b[2J"), saved("1", "adam"))
	train(3, 3, nil, callbacks.JSONL(filepath.Join(dir, "log.jsonl"), loop.EachStep))
	return dir
}

func columnOf(t *testing.T, csvText string, name string) (cells []string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(csvText)).ReadAll()
	require.NoError(t, err)
	for i, column := range rows[0] {
		if column == name {
			for _, row := range rows[1:] {
				cells = append(cells, row[i])
			}
		}
	}
	return cells
}

func TestRuns(t *testing.T) {
	dir := recordedRuns(t)
	table := run(t, "runs", dir)
	require.Zero(t, table.code, table.stderr)
	require.Empty(t, table.stderr)
	lines := strings.Split(strings.TrimSpace(table.stdout), "\n")
	require.Len(t, lines, 5)
	require.Regexp(t, `^name +status +steps +duration +optimizer +rate +best loss +last loss +best accuracy +last accuracy +end$`, lines[0], "layers are the same")
	require.Regexp(t, `^log.jsonl +unknown +3 +\S+ +1 +1 +0.625 +0.625$`, lines[1])
	require.Regexp(t, `^lr/0.01 +ended +8 +\S+ +sgd +0.01 +0.25 +0.25 +0.75 +0.75 +data ended after 8 steps$`, lines[2])
	require.Regexp(t, `^lr/1 +failed +2 +\S+ +adam +1 +2 +2 +0.5 +0.5 +failed after 2 steps: loop: ste…$`, lines[4])
	require.NotContains(t, table.stdout, "\x1b")

	for by, want := range map[string][]string{
		"name": {"log.jsonl", "lr/0.01", "lr/0.1", "lr/1"}, "-name": {"lr/1", "lr/0.1", "lr/0.01", "log.jsonl"},
		"-best loss": {"lr/1", "log.jsonl", "lr/0.01", "lr/0.1"}, "rate": {"lr/0.01", "lr/0.1", "lr/1", "log.jsonl"}, "-rate": {"lr/1", "lr/0.1", "lr/0.01", "log.jsonl"},
	} {
		require.Equal(t, want, columnOf(t, run(t, "runs", dir, "--format", "csv", "--sort="+by).stdout, "name"), by)
	}
	for filter, want := range map[string][]string{
		"status = ended": {"lr/0.01", "lr/0.1"}, "status != ended": {"log.jsonl", "lr/1"}, "rate <= 0.10": {"lr/0.01", "lr/0.1"}, "optimizer ~ da": {"lr/0.1", "lr/1"},
		"best loss < 1": {"lr/0.01", "lr/0.1"}, "steps > 3": {"lr/0.01", "lr/0.1"}, "duration < 1h": {"log.jsonl", "lr/0.01", "lr/0.1", "lr/1"}, "status > 3": nil,
		"name = lr/1": {"lr/1"}, "steps != 3": {"lr/0.01", "lr/0.1", "lr/1"}, "steps >= 8": {"lr/0.01"},
	} {
		require.Equal(t, want, columnOf(t, run(t, "runs", dir, "--format", "csv", "--filter", filter).stdout, "name"), filter)
	}
	require.Equal(t, []string{"lr/0.1"}, columnOf(t, run(t, "runs", dir, "--format", "csv", "--filter", "status = ended", "--filter", "optimizer = adam").stdout, "name"))
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{dir, "--sort", "loss"}, 1, `there is no column "loss"; the columns are "name", "status", "steps"`},
		{[]string{dir, "--filter", "loss < 1"}, 1, `there is no column "loss"; the columns are "name"`},
		{[]string{dir, "--filter", "rate<1"}, 1, `the filter "rate<1" is not 'COLUMN OP VALUE', with spaces around OP, one of != <= >= = < > ~`},
		{[]string{filepath.Join(dir, "lr", "0.1", "step-000000000004")}, 1, "no run in " + filepath.Join(dir, "lr", "0.1", "step-000000000004") + ": of 3 files none is"},
		{[]string{filepath.Join(dir, "none")}, 2, "there is no folder"},
		{[]string{filepath.Join(dir, "log.jsonl")}, 2, "is a file, expected a folder of runs"},
		{[]string{dir, "--format", "xml"}, 2, `"text","csv","html"`},
	} {
		got := run(t, append([]string{"runs"}, row.args...)...)
		require.Equal(t, row.code, got.code, row.args)
		require.Contains(t, got.stderr, row.want)
	}

	page := run(t, "runs", dir, "--format", "html").stdout
	require.Contains(t, page, `<h1>4 runs</h1>`)
	require.Contains(t, page, `&lt;b&gt;bad&lt;/b&gt;`)
	require.NotContains(t, page, "<b>")
	require.Contains(t, page, `<td class="number" data-number="0.25" title="0.25">0.25</td>`)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "log.jsonl"), []byte("{\"elapsed.steps\":1,\"losses.loss\":?}\n"), 0o600))
	damaged := run(t, "runs", dir)
	require.Equal(t, 1, damaged.code)
	require.Contains(t, damaged.stderr, "lazo: run log.jsonl: ")
	require.Contains(t, damaged.stdout, "lr/0.01")
}
