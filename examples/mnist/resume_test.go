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
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// killedRuns is the number of runs that are killed.
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

// A run that is killed at any moment and resumed ends like one that was not.
func TestF10_killedAndResumed(t *testing.T) {
	binary := plugintest.Program(t, ".")
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
	goingOn := regexp.MustCompile(`the run is resumed".* step=(\d+)\n`)
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
				for range 2 + random.IntN(9) { // resuming, training, and some tenths of the steps
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

// signalledRuns is the number of runs that get a signal, some while they compile.
var signalledRuns = 4

// A signal at any moment: the exit code that a shell expects, the step that was made last is on the disk, and from
// there the run ends as one that had no signal.
func TestF09_signalledAndResumed(t *testing.T) {
	binary := plugintest.UncachedProgram(t, ".")
	run := func(dir string, sent syscall.Signal, after time.Duration) (code int, text string, took time.Duration) {
		cmd := exec.CommandContext(t.Context(), binary, "-epochs", "10", "-seed", "3", "-resume", dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Start())
		var begin time.Time
		if sent != 0 {
			timer := time.AfterFunc(after, func() {
				begin = time.Now()
				_ = cmd.Process.Signal(sent) // it may be over
			})
			defer timer.Stop()
		}
		_ = cmd.Wait()
		if !begin.IsZero() {
			took = time.Since(begin)
		}
		return cmd.ProcessState.ExitCode(), stderr.String(), took
	}
	whole := t.TempDir()
	start := time.Now()
	code, text, _ := run(whole, 0, 0)
	length := time.Since(start)
	require.Zero(t, code, text)
	_, hash := newest(t, whole)

	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	stoppedAfter := regexp.MustCompile(`stopped after (\d+) of 440 steps`)
	codes := map[int]int{}
	var at []int64
	longest, quickest := time.Duration(0), time.Hour
	for i, dir := 0, ""; i < signalledRuns; i++ {
		if i%3 == 0 {
			dir = t.TempDir()
		}
		sent := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[i%2]
		// A process that has not come to its first statement yet dies of a signal, as any does.
		code, text, took := run(dir, sent, 150*time.Millisecond+time.Duration(random.Int64N(int64(length))))
		codes[code]++
		longest = max(longest, took)
		if code != 0 { // else it was faster than the signal
			quickest = min(quickest, took)
			require.Equal(t, 128+int(sent), code, text)
			if m := stoppedAfter.FindStringSubmatch(text); m != nil && m[1] != "0" {
				n, err := strconv.ParseInt(m[1], 10, 64)
				require.NoError(t, err)
				step, _ := newest(t, dir)
				require.EqualValues(t, n, step, "the last step is on the disk: %s", text)
				at = append(at, n)
			}
		}
		if i%3 == 2 || i == signalledRuns-1 {
			code, text, _ := run(dir, 0, 0)
			require.Zero(t, code, text)
			_, again := newest(t, dir)
			require.Equal(t, hash, again)
		}
	}
	if len(codes) > 1 || codes[0] == 0 {
		require.Less(t, quickest, length+time.Second, "a compilation or a step, a save and 1 s: less than a whole run more")
	}
	t.Logf("F09: %d signals at random moments, exit codes %v; stopped in training after steps %v, each on the disk; at most %v until the exit; then the same bits",
		signalledRuns, codes, at, longest.Round(time.Millisecond))
}

func TestResumeMistakes(t *testing.T) {
	binary, dir := plugintest.Program(t, "."), t.TempDir()
	code, _, stderr := trained(t, binary, "-epochs", "1", "-resume", dir)
	require.Equal(t, 0, code, stderr)
	code, _, stderr = trained(t, binary, "-epochs", "1", "-batch", "16", "-seed", "1", "-resume", dir)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, `the run was saved with other settings: Batch was 32 and is 16, Seed was 0 and is 1; give it the same ones, or begin in another folder`)
	f, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	defer f.Close()
	code, _, stderr = trained(t, binary, "-epochs", "1", "-resume", dir)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "writes there")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	require.NotZero(t, run(ctx, []string{"-epochs", "1", "-resume", t.TempDir()}, &out, &out))
}
