package main_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// checkpoints is a folder with steps 10, 20 and 30.
func checkpoints(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	f, err := checkpoint.Open(dir, checkpoint.Options{})
	require.NoError(t, err)
	for i, loss := range []float64{0.5, 0.25, 0.75} {
		tensors := []checkpoint.Tensor{
			{Name: "/dense/weights", DType: safetensors.F32, Dims: []int{2}, Data: safetensors.Bytes([]float32{1, float32(i)})},
			{Name: "/global_step", DType: safetensors.I64, Dims: []int{}, Data: safetensors.Bytes([]int64{7})},
		}
		if i == 2 {
			tensors = append(tensors, checkpoint.Tensor{Name: "/new", DType: safetensors.U8, Dims: []int{1}, Data: []byte{1}})
		}
		type origin struct {
			Trainable bool `json:"trainable"`
			Group     int  `json:"group"`
		}
		require.NoError(t, f.Save(t.Context(), checkpoint.Step(10*(i+1)), checkpoint.Content{Tensors: tensors, Metrics: map[string]float64{"loss": loss},
			Sections: map[string]any{"variables": map[string]origin{"/dense/weights": {true, 0}, "/global_step": {false, 0}}}}))
	}
	require.NoError(t, f.Close())
	return dir
}

func TestCkpt(t *testing.T) {
	dir := checkpoints(t)
	require.Regexp(t, `^step +saved +bytes +metrics\n10 +\S+Z +16 +loss=0.5\n20 +\S+Z +16 +loss=0.25\n30 +\S+Z +17 +loss=0.75\n$`, run(t, "ckpt", "ls", dir).stdout)
	show := run(t, "ckpt", "show", dir, "--step", "20").stdout
	require.Contains(t, show, "step 20, saved ")
	require.Contains(t, show, "metrics: loss=0.25\n\"/dense/weights\"  F32[2]  8 bytes\n\"/global_step\"    I64[]   8 bytes\nsection \"variables\": ")
	require.Contains(t, run(t, "ckpt", "show", dir).stdout, "step 30, saved ", "the newest")
	require.Equal(t, result{0, "10: ok\n20: ok\n30: ok\n", ""}, run(t, "ckpt", "verify", dir))

	file := filepath.Join(t.TempDir(), "weights.safetensors")
	require.Equal(t, result{0, "step 20: 1 tensors in " + file + "\n", ""}, run(t, "ckpt", "export", dir, file, "--step", "20", "--flax"))
	require.Equal(t, 1, run(t, "ckpt", "export", dir, file).code, "it is there")
	other := filepath.Join(t.TempDir(), "new")
	require.Equal(t, result{0, "step 3: 1 tensors in " + other + "\n", ""}, run(t, "ckpt", "import", file, other, "--step", "3"))
	require.Contains(t, run(t, "ckpt", "show", other).stdout, "\"params/dense/kernel\"  F32[2]  8 bytes\n")
	rotten, err := os.ReadFile(file)
	require.NoError(t, err)
	rotten[len(rotten)-1] ^= 4
	require.NoError(t, os.WriteFile(file, rotten, 0o600))
	refused := run(t, "ckpt", "import", file, filepath.Join(t.TempDir(), "rotten"))
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.stderr, "safetensors: read "+file+": damaged: the checksum differs")
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	require.Contains(t, run(t, "ckpt", "import", pipe, filepath.Join(t.TempDir(), "piped")).stderr, pipe+": is not a regular file", "it does not wait for a writer")
	require.Equal(t, 2, run(t, "ckpt", "export", dir, file+".all", "--all", "--flax").code)

	require.Contains(t, run(t, "ckpt", "prune", dir).stderr, "set which checkpoints to keep: --last")
	require.Regexp(t, `metrics\n20 .*\n30 .*\n$`, run(t, "ckpt", "prune", dir, "--last", "1", "--lowest", "loss").stdout)

	name := filepath.Join(dir, "step-000000000030", "state.safetensors")
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	text[len(text)-1]++
	require.NoError(t, os.WriteFile(name, text, 0o600))
	bad := run(t, "ckpt", "verify", dir)
	require.Equal(t, 1, bad.code)
	require.Regexp(t, `^20: ok\n30: checkpoint: verify step 30 in .*state\.safetensors: tensor "/new".*\n$`, bad.stdout)
	require.Contains(t, run(t, "ckpt", "verify", t.TempDir()).stderr, "no checkpoint in the folder")
	require.Contains(t, run(t, "ckpt", "show", dir, "--step", "7").stderr, "no checkpoint of this step")
}

// What several processes saved, each its parts, is as what one process saved.
func TestCkpt_ofSeveralProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "..", "checkpoint", "testdata", "format-2"))))
	require.Regexp(t, `\n5 +\S+Z +152 +\n$`, run(t, "ckpt", "ls", dir).stdout)
	require.Equal(t, result{0, "5: ok\n", ""}, run(t, "ckpt", "verify", dir))
	show := run(t, "ckpt", "show", dir).stdout
	require.Contains(t, show, "step 5, saved ")
	require.Contains(t, show, "\"/rows\"                F32[8]     32 bytes\n\"/whole\"               F32[2]     8 bytes\n")
	file := filepath.Join(t.TempDir(), "all.safetensors")
	require.Equal(t, result{0, "step 5: 5 tensors in " + file + "\n", ""}, run(t, "ckpt", "export", dir, file, "--all"))
	other := filepath.Join(t.TempDir(), "one")
	require.Equal(t, 0, run(t, "ckpt", "import", file, other, "--step", "5").code)
	require.Equal(t, result{0, "5 of 5 tensors are the same\n", ""}, run(t, "ckpt", "diff", dir, "5", "5", "--other", other))
	require.NoError(t, os.Remove(filepath.Join(dir, "step-000000000005", "rank-00001.safetensors")))
	lost := run(t, "ckpt", "verify", dir)
	require.Equal(t, 1, lost.code)
	require.Contains(t, lost.stdout, "5: checkpoint: verify step 5 in "+dir+": damaged: step-000000000005/rank-00001.safetensors: ")
	require.Equal(t, 1, run(t, "ckpt", "ls", dir).code)
}
