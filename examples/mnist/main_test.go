//lazo:norace
package main

import (
	"bufio"
	"bytes"
	"context"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// trained runs the built program, which finds what earlier runs compiled.
func trained(t *testing.T, binary string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	child := exec.CommandContext(t.Context(), binary, args...)
	child.Stdout, child.Stderr = &out, &errs
	if err := child.Run(); err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError))
	}
	return child.ProcessState.ExitCode(), out.String(), errs.String()
}

// command runs the program in this process.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

var result = regexp.MustCompile(`(?m)^test accuracy: (0\.\d{3}|1\.000) \(seconds: \d+\.\d\)\n\z`)

func accuracyOf(t *testing.T, stdout string) float64 {
	t.Helper()
	m := result.FindStringSubmatch(stdout)
	require.NotNil(t, m, stdout)
	a, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return a
}

// The example is the acceptance test: each of three seeds, and their mean.
func TestAccuracy(t *testing.T) {
	binary, sum, first := plugintest.Program(t, "."), 0.0, 0.0
	for seed := range 3 {
		code, stdout, stderr := trained(t, binary, "-seed", strconv.Itoa(seed))
		require.Equal(t, 0, code, stderr)
		a := accuracyOf(t, stdout)
		require.GreaterOrEqual(t, a, 0.90, "seed %d", seed)
		if sum += a; seed == 0 {
			first = a
		}
		require.Contains(t, stderr, "epoch 10/10 - ")
		require.Contains(t, stderr, " - loss: ")
		require.Contains(t, stderr, " - accuracy: ")
		require.Contains(t, stderr, " examples/s\n")
		require.NotContains(t, stderr, "\r", "no control characters outside a terminal")
	}
	require.GreaterOrEqual(t, sum/3, 0.91)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	said := regexp.MustCompile(`go run \./examples/mnist .*test accuracy (0\.\d\d) `).FindSubmatch(readme)
	require.NotNil(t, said)
	claim, err := strconv.ParseFloat(string(said[1]), 64)
	require.NoError(t, err)
	require.InDelta(t, claim, first, 0.0051, "what README says of its command, which has seed 0")
	t.Logf("mean test accuracy of seeds 0-2: %.3f", sum/3)
}

// The digits as PNG files, whose bar says which part of an epoch waits for them.
func TestImages(t *testing.T) {
	digits, _, err := data.Digits()
	require.NoError(t, err)
	dir := t.TempDir()
	x, y := digits.Fields()[0].Array.Flat.([]float32), digits.Fields()[1].Array.Flat.([]int32)
	for i := range 200 {
		picture := image.NewGray(image.Rect(0, 0, 8, 8))
		for k := range picture.Pix {
			picture.Pix[k] = uint8(255 * x[64*i+k])
		}
		var file bytes.Buffer
		require.NoError(t, png.Encode(&file, picture))
		class := filepath.Join(dir, strconv.Itoa(int(y[i])))
		require.NoError(t, os.MkdirAll(class, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(class, strconv.Itoa(i)+".png"), file.Bytes(), 0o600))
	}
	code, stdout, stderr := command(t, "-data", dir, "-epochs", "2")
	require.Equal(t, 0, code, stderr)
	accuracyOf(t, stdout)
	require.Regexp(t, `epoch 2/2 .* examples/s - data \d+%( \(|\n)`, stderr)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "ten"), 0o700))
	require.NoError(t, os.Link(filepath.Join(dir, "0", "0.png"), filepath.Join(dir, "ten", "0.png")))
	code, _, stderr = command(t, "-data", dir)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "has 11 folders, expected at most 10")
}

func TestSameSeedSameResult(t *testing.T) {
	binary, args := plugintest.Program(t, "."), []string{"-quiet", "-epochs", "2", "-seed", "7"}
	code, first, stderr := trained(t, binary, args...)
	require.Equal(t, 0, code, stderr)
	require.Empty(t, stderr, "-quiet")
	_, second, _ := trained(t, binary, args...)
	require.Equal(t, accuracyOf(t, first), accuracyOf(t, second))
}

func TestMistakes(t *testing.T) {
	damaged := t.TempDir()
	for _, name := range []string{"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"} {
		require.NoError(t, os.WriteFile(filepath.Join(damaged, name), []byte("not an IDX file"), 0o600))
	}
	text := filepath.Join(t.TempDir(), "plugin.so")
	require.NoError(t, os.WriteFile(text, []byte("not a plugin"), 0o600))
	for _, row := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"unknown flag", []string{"-epoch", "3"}, 2, "-epoch"},
		{"not a number", []string{"-epochs", "many"}, 2, `"many"`},
		{"no epochs", []string{"-epochs", "0"}, 2, "-epochs must be at least 1, got 0"},
		{"no batch", []string{"-batch", "-1"}, 2, "-batch must be at least 1, got -1"},
		{"no rate", []string{"-lr", "NaN"}, 2, "-lr must be positive, got NaN"},
		{"an argument", []string{"digits"}, 2, `unexpected argument "digits"`},
		{"missing folder", []string{"-data", filepath.Join(damaged, "missing")}, 1, "missing"},
		{"damaged file", []string{"-data", damaged}, 1, "train-images-idx3-ubyte"},
		{"batch too large", []string{"-batch", "2000"}, 1, "-batch 2000 is more than the 1437 training examples"},
		{"missing plugin", []string{"-plugin", filepath.Join(damaged, "no.so")}, 1, "no.so"},
		{"damaged plugin", []string{"-plugin", text}, 1, text},
	} {
		t.Run(row.name, func(t *testing.T) {
			code, stdout, stderr := command(t, row.args...)
			require.Equal(t, row.code, code, stderr)
			require.Empty(t, stdout)
			require.Contains(t, stderr, row.want)
			require.True(t, strings.HasPrefix(stderr, "mnist: "), stderr)
			if row.name != "missing plugin" { // lists the places, a line each
				require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	code, stdout, stderr := command(t, "-h")
	require.Equal(t, 0, code)
	require.Empty(t, stderr)
	for _, flag := range []string{"-data", "-epochs", "-batch", "-lr", "-seed", "-plugin", "-quiet"} {
		require.Contains(t, stdout, "  "+flag)
	}
}

// The first signal ends the run at a step border, with a summary and the exit code that a shell expects.
func TestSignals(t *testing.T) {
	binary := plugintest.Program(t, ".")
	for _, row := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}} {
		t.Run(row.signal.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			child := exec.CommandContext(ctx, binary, "-epochs", "100000")
			pipe, err := child.StderrPipe()
			require.NoError(t, err)
			var stdout bytes.Buffer
			child.Stdout = &stdout
			require.NoError(t, child.Start())
			// The bar's first line says that it trains.
			stderr := bufio.NewReader(pipe)
			line, err := stderr.ReadString('\n')
			require.NoError(t, err)
			require.Contains(t, line, "epoch      1/100000 - ")
			require.NoError(t, child.Process.Signal(row.signal))
			text, err := io.ReadAll(stderr)
			require.NoError(t, err)
			_ = child.Wait()
			require.Equal(t, row.code, child.ProcessState.ExitCode(), string(text))
			require.Regexp(t, `stopped after \d+ of 4400000 steps, in \d+\.\d s\n`, string(text))
			require.Contains(t, string(text), "mnist: "+row.signal.String()+"\n")
			require.Empty(t, stdout.String())
		})
	}
}
