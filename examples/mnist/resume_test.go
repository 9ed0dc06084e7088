package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
)

// killedRuns is how many runs are killed.
var killedRuns = 5

// newest is the step of the newest checkpoint, and a hash of its parameters and all else of the state.
func newest(t *testing.T, dir string) (checkpoint.Step, string) {
	t.Helper()
	f, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true})
	require.NoError(t, err)
	defer f.Close()
	c, err := f.Newest(t.Context())
	require.NoError(t, err)
	hash, n := sha256.New(), 0
	for _, tensor := range c.Tensors {
		if strings.HasPrefix(tensor.Name, "/") { // not the history, which has times
			fmt.Fprintln(hash, tensor.Name, tensor.Dims)
			hash.Write(tensor.Data)
			n++
		}
	}
	require.Greater(t, n, 20)
	return c.Step, fmt.Sprintf("%x", hash.Sum(nil))
}

// What is killed at any moment and resumed ends as what was not.
func TestF10_killedAndResumed(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "mnist")
	out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	start := func(dir string, stderr io.Writer, stdout io.Writer) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), binary, "-epochs", "10", "-seed", "3", "-resume", dir)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		require.NoError(t, cmd.Start())
		return cmd
	}
	finish := func(dir string) float64 {
		var stdout, stderr bytes.Buffer
		require.NoError(t, start(dir, &stderr, &stdout).Wait(), stderr.String())
		return accuracyOf(t, stdout.String())
	}
	whole := t.TempDir()
	accuracy := finish(whole)
	step, hash := newest(t, whole)
	require.EqualValues(t, 440, step)
	require.Equal(t, accuracy, finish(whole), "a run that is over is over")

	resumed := 0
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	goingOn := regexp.MustCompile(`going on after step (\d+)\n`)
	var at []int64
	for left := killedRuns; left > 0; {
		dir := t.TempDir()
		for range 5 {
			if left == 0 {
				break
			}
			left--
			lines, stderr := io.Pipe()
			cmd := start(dir, stderr, io.Discard)
			ended := make(chan struct{})
			go func() {
				_ = cmd.Wait()
				_ = stderr.Close() // so that who reads hears of the end
				close(ended)
			}()
			said := make(chan string)
			go func() {
				all := bufio.NewReader(lines)
				text := ""
				for range 2 + random.IntN(9) { // that it goes on, that it trains, and some tenths of the steps
					line, _ := all.ReadString('\n')
					text += line
				}
				said <- text
				_, _ = io.Copy(io.Discard, all)
			}()
			text := <-said
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			_ = cmd.Process.Kill()
			<-ended
			if m := goingOn.FindStringSubmatch(text); m != nil {
				n, err := strconv.ParseInt(m[1], 10, 64)
				require.NoError(t, err)
				at, resumed = append(at, n), resumed+1
			}
		}
		require.Equal(t, accuracy, finish(dir))
		_, again := newest(t, dir)
		require.Equal(t, hash, again)
	}
	t.Logf("F10: %d runs killed at random moments, %d of them resumed from steps %v: the same accuracy (%.3f) and the same %d bits of hash", killedRuns, resumed, at, accuracy, 256)
}

func TestResumeMistakes(t *testing.T) {
	dir := t.TempDir()
	code, _, stderr := command(t, "-epochs", "1", "-resume", dir)
	require.Equal(t, 0, code, stderr)
	code, _, stderr = command(t, "-epochs", "1", "-batch", "16", "-resume", dir)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "that run has {Data:digits Batch:32 Rate:0.001 Seed:0}, this one {Data:digits Batch:16 Rate:0.001 Seed:0}: give the same flags, or another folder")
	f, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	defer f.Close()
	code, _, stderr = command(t, "-epochs", "1", "-resume", dir)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "writes there")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	require.NotZero(t, run(ctx, []string{"-epochs", "1", "-resume", t.TempDir()}, &out, &out))
}
