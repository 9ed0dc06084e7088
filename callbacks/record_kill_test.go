package callbacks_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/loop"
)

const childFile = "LAZO_CALLBACKS_TEST_FILE"

// TestWriterChild is the process that TestF29_writerSurvivesAKill kills; run for itself it does nothing.
func TestWriterChild(t *testing.T) {
	path := os.Getenv(childFile)
	if path == "" {
		return
	}
	form := writerForms[0]
	if strings.HasSuffix(path, ".csv") {
		form = writerForms[1]
	}
	step := func(_ context.Context, s, n int) (int, loop.Logs, error) {
		logs := metric("m", float64(s))
		if s%10 == 0 {
			logs.Metric(fmt.Sprint("late", s/1000%40), 1) // later columns: the table is rewritten at times
		}
		if s == 300 {
			fmt.Println("ready")
		}
		return s + 1, logs, nil
	}
	_, _ = loop.New(loop.On(loop.EachStep, loop.StepFunc(step))).Run(t.Context(), 0, loop.Data[int](forever), form.option(path, loop.EachStep))
}

func TestF29_writerSurvivesAKill(t *testing.T) {
	eachForm(t, func(t *testing.T, form writerForm, path string) {
		child := exec.Command(os.Args[0], "-test.run=^TestWriterChild$")
		child.Env = append(os.Environ(), childFile+"="+path)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
		require.NoError(t, child.Process.Kill())
		require.Error(t, child.Wait())

		data, err := os.ReadFile(path)
		require.NoError(t, err)
		whole := strings.Count(string(data), "\n")
		if form.name == "csv" {
			whole--
		}
		require.GreaterOrEqual(t, whole, 300, "what was reported before the kill is there")
		form.write(t, path, whole+1, whole+5)
		require.Equal(t, upTo(1, whole+5), form.stepsIn(t, path), "gone on with after the last line")
		form.write(t, path, 101, 110)
		require.Equal(t, upTo(1, 110), form.stepsIn(t, path), "gone on with from a checkpoint at step 100: no step twice")
		t.Logf("F29: %s: killed after %d whole lines: 0 lost, 0 twice", form.name, whole)
	})
}
