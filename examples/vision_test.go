package examples

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// said runs a program and gives what it says on both outputs.
func said(t *testing.T, binary string, args ...string) (stdout []byte, stderr string) {
	t.Helper()
	var errs bytes.Buffer
	child := exec.CommandContext(t.Context(), binary, args...)
	child.Stderr = &errs
	out, err := child.Output()
	require.NoError(t, err, errs.String())
	return out, errs.String()
}

// short checks that the file a reader opens first has about a page.
func short(t *testing.T, name string) {
	t.Helper()
	require.LessOrEqual(t, linesOf(t, filepath.Join(name, "main.go")), 80)
}

// The three shapes are one training: they end with the same figures.
func TestLinear(t *testing.T) {
	short(t, "linear")
	linear := plugintest.Program(t, "linear")
	var first []byte
	for _, shape := range []string{"loop", "manual", "train"} {
		out, stderr := said(t, linear, "-shape", shape)
		n := numbersOf(t, `^loss: (\S+) at first, (\S+) at last\ntest accuracy: (\S+)\n$`, out)
		require.Contains(t, stderr, "1000/1000 - ")
		require.Less(t, n[1], n[0]/3)
		require.GreaterOrEqual(t, n[2], 0.88, "it comes to 0.914")
		if first == nil {
			first = out
		}
		require.Equal(t, string(first), string(out))
		t.Logf("%s: loss %.3f to %.3f, test accuracy %.3f", shape, n[0], n[1], n[2])
	}
	out, err := exec.Command(linear, "-shape", "round").CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "-shape round: must be loop, manual or train")
	interrupted(t, linear, "-steps", "100000000")
	interrupted(t, linear, "-steps", "100000000", "-shape", "manual")
}

// The CNN learns, reports after each inner loop, and resumes from its checkpoints.
func TestCNN(t *testing.T) {
	short(t, "cnn")
	cnn, dir := plugintest.Program(t, "cnn"), t.TempDir()
	out, _ := said(t, cnn, "-dir", dir, "-steps", "200")
	require.Contains(t, string(out), "/conv_1 ")
	require.Equal(t, 2, bytes.Count(out, []byte("| test loss ")))
	out, _ = said(t, cnn, "-dir", dir, "-steps", "500")
	require.NotContains(t, string(out), "step  200 ")
	require.Equal(t, 3, bytes.Count(out, []byte("| test loss ")))
	over, _ := said(t, cnn, "-dir", dir, "-steps", "500")
	require.NotContains(t, string(over), "| test loss ", "the run has its 500 steps")
	require.Equal(t, out[bytes.LastIndex(out, []byte("test accuracy: ")):], over[bytes.LastIndex(over, []byte("test accuracy: ")):])
	n := numbersOf(t, `(?s)step  500 \| train loss (\S+) accuracy (\S+) f1 \S+ \| test loss \S+ accuracy \S+ f1 (\S+) .*\ntest accuracy: (\S+)\n$`, out)
	t.Logf("train loss %.3f, train accuracy %.3f, test F1 %.3f, test accuracy %.3f", n[0], n[1], n[2], n[3])
	require.Less(t, n[0], 0.25, "it comes to 0.162")
	require.GreaterOrEqual(t, n[2], 0.9, "it comes to 0.946")
	require.GreaterOrEqual(t, n[3], 0.9, "it comes to 0.947")
	whole, _ := said(t, cnn, "-steps", "500")
	require.Equal(t, line500(t, whole), line500(t, out), "resumed or not")
	interrupted(t, cnn, "-steps", "100000000")
}

// line500 is the output about the inner loop that ends with step 500 and its test, without the speed.
func line500(t *testing.T, out []byte) string {
	t.Helper()
	_, line, found := strings.Cut(string(out), "step  500 | ")
	line, _, ends := strings.Cut(line, "\n")
	at := strings.LastIndex(line, " | ")
	require.True(t, found && ends && at > 0 && strings.HasSuffix(line, " steps/s"), string(out))
	return line[:at]
}

// Four devices train it as one does.
func TestResNet(t *testing.T) {
	short(t, "resnet")
	resnet := plugintest.Program(t, "resnet")
	var accuracy []float64
	for _, devices := range []string{"4", "1"} {
		out, stderr := said(t, resnet, "-devices", devices, "-epochs", "4")
		n := numbersOf(t, `^test accuracy: (\S+)\n$`, out)
		require.Contains(t, stderr, "88/88 - ")
		t.Logf("%s devices, 4 epochs: test accuracy %.3f", devices, n[0])
		require.GreaterOrEqual(t, n[0], 0.90, "it comes to 0.942")
		accuracy = append(accuracy, n[0])
	}
	require.InDelta(t, accuracy[0], accuracy[1], 0.02)
	interrupted(t, resnet, "-epochs", "1000000")
}

// A state without XLA stops early, returns its best state, and resumes from a checkpoint.
func TestOwnState(t *testing.T) {
	short(t, "own")
	deps, err := exec.Command("go", "list", "-deps", "./own").Output()
	require.NoError(t, err)
	require.NotContains(t, string(deps), "gomlx")
	require.NotContains(t, string(deps), "lazo/xla")

	own, dir := plugintest.Program(t, "own"), t.TempDir()
	whole, stderr := said(t, own)
	n := numbersOf(t, `^stopped after (\d+) steps, best test loss (\S+) at step (\d+)\ntest accuracy: (\S+)\n$`, whole)
	require.Contains(t, stderr, "/20000 - ")
	require.EqualValues(t, 1000, n[0]-n[2], "ten evaluations without a better one")
	require.Less(t, n[1], 0.09)
	require.GreaterOrEqual(t, n[3], 0.96)
	t.Logf("stopped at %.0f, best at %.0f: test loss %.3f, accuracy %.3f", n[0], n[2], n[1], n[3])

	said(t, own, "-dir", dir, "-steps", "2000")
	resumed, _ := said(t, own, "-dir", dir)
	require.Equal(t, string(whole), string(resumed))
	interrupted(t, own, "-steps", "100000000", "-patience", "100000000")
}

// interrupted checks that Ctrl-C ends a run between two steps, with the exit code that a shell expects.
func interrupted(t *testing.T, binary string, args ...string) {
	t.Helper()
	child := exec.CommandContext(t.Context(), binary, args...)
	pipe, err := child.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	stderr := bufio.NewReader(pipe)
	line, err := stderr.ReadString('\n') // the bar's first line says that it trains
	require.NoError(t, err)
	require.Regexp(t, `1/\d+000 - `, line)
	require.NoError(t, child.Process.Signal(syscall.SIGINT))
	text, err := io.ReadAll(stderr)
	require.NoError(t, err)
	_ = child.Wait()
	require.Equal(t, 130, child.ProcessState.ExitCode(), string(text))
	require.Regexp(t, `interrupt\n$`, string(text))
}
