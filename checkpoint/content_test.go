package checkpoint_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
)

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("oh") }

//lazo:norace
func TestSaveRefusesContent(t *testing.T) {
	four := func(name string) checkpoint.Tensor {
		return checkpoint.Tensor{Name: name, DType: safetensors.F32, Dims: []int{}, Data: make([]byte, 4)}
	}
	writes := func(dims []int, write func(io.Writer) error) checkpoint.Content {
		return checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "w", DType: safetensors.U8, Dims: dims, Write: write}}}
	}
	section := func(x any) checkpoint.Content { return checkpoint.Content{Sections: map[string]any{"s": x}} }
	cause := errors.New("cause")
	for _, c := range []struct {
		name    string
		step    checkpoint.Step
		content checkpoint.Content
		want    string
		is      error
	}{
		{"a negative step", -1, checkpoint.Content{}, "step -1 is negative", nil},
		{"a name twice", 1, checkpoint.Content{Tensors: []checkpoint.Tensor{four("a"), four("b"), four("a")}}, `"a"`, nil},
		{"a name that is not UTF-8", 1, checkpoint.Content{Tensors: []checkpoint.Tensor{four("a\xff")}}, `UTF-8`, nil},
		{"a long name", 1, checkpoint.Content{Tensors: []checkpoint.Tensor{four(strings.Repeat("x", 5000))}}, `4096`, safetensors.ErrLimit},
		{"an unknown dtype", 1, checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "a", DType: 200}}}, `DType(200)`, nil},
		{"a negative length", 1, checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "a", DType: safetensors.U8, Dims: []int{-1}}}}, `-1`, nil},
		{"lengths that overflow", 1, checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "a", DType: safetensors.U8, Dims: []int{1 << 40, 1 << 40}}}}, `"a"`, nil},
		{"too few bytes", 1, checkpoint.Content{Tensors: []checkpoint.Tensor{{Name: "a", DType: safetensors.F32, Dims: []int{2}, Data: make([]byte, 7)}}}, `7`, nil},
		{"Write writes too little", 1, writes([]int{3}, func(w io.Writer) error { _, err := w.Write(make([]byte, 2)); return err }), `"w"`, nil},
		{"Write writes too much", 1, writes([]int{3}, func(w io.Writer) error { _, err := w.Write(make([]byte, 4)); return err }), `"w"`, nil},
		{"Write fails", 1, writes([]int{3}, func(io.Writer) error { return cause }), `"w"`, cause},
		{"Write panics", 1, writes([]int{3}, func(io.Writer) error { panic("oh") }), `oh`, nil},
		{"Write panics with an error", 1, writes([]int{3}, func(io.Writer) error { panic(cause) }), `"w"`, cause},
		{"a section that JSON has no word for", 1, section(math.NaN()), `section "s"`, nil},
		{"a section that panics", 1, section(panics{}), `oh`, nil},
		{"a section with a key twice", 1, section(json.RawMessage(`{"a":{"b":1,"c":2,"b":3}}`)), `"b" appears twice`, nil},
		{"a section that is not JSON", 1, section(json.RawMessage(`{`)), `section "s"`, nil},
		{"a section too deep", 1, section(json.RawMessage(strings.Repeat("[", 100) + strings.Repeat("]", 100))), `deeper`, safetensors.ErrLimit},
		{"a section too long", 1, section(strings.Repeat("x", checkpoint.ManifestLimit)), `manifest.json takes`, safetensors.ErrLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := &vfs.Mem{}
			f := openMem(t, m, checkpoint.Options{})
			err := f.Save(t.Context(), c.step, c.content)
			require.ErrorContains(t, err, c.want)
			require.Regexp(t, `^checkpoint: save step -?1 in folder: `, err.Error())
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			require.Empty(t, leftovers(t, m))
			require.Empty(t, steps(t, f))
			a := f.Async()
			require.ErrorContains(t, errors.Join(a.Save(t.Context(), c.step, c.content), a.Close()), c.want)
			require.Empty(t, leftovers(t, m))
		})
	}
}
