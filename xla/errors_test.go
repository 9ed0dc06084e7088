package xla_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/backends/notimplemented"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/lazo-ml/lazo/xla"
)

func TestWrapError(t *testing.T) {
	rows := []struct {
		name, text string
		code       xla.Code // 0: comes back as it is
		is         error
		want       string
	}{
		{"out of memory", "running step: PJRT error (code=8): Out of memory", xla.ResourceExhausted, xla.ErrOutOfMemory, "xla: running step: out of memory: RESOURCE_EXHAUSTED: Out of memory"},
		{"without context", "PJRT error (code=3): bad shape", xla.InvalidArgument, nil, "xla: INVALID_ARGUMENT: bad shape"},
		{"several lines", "a: b: PJRT error (code=13): one\ntwo", xla.Internal, nil, "xla: a: b: INTERNAL: one\ntwo"},
		{"device gone", "PJRT error (code=14): socket closed", xla.Unavailable, xla.ErrDeviceLost, "xla: device lost: UNAVAILABLE: socket closed"},
		{"data loss", "PJRT error (code=15): x", xla.DataLoss, xla.ErrDeviceLost, "xla: device lost: DATA_LOSS: x"},
		{"CUDA fault", "PJRT error (code=13): CUDA_ERROR_ILLEGAL_ADDRESS: x", xla.Internal, xla.ErrDeviceLost, "xla: device lost: INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: x"},
		{"CUDA memory", "PJRT error (code=13): CUDA_ERROR_OUT_OF_MEMORY", xla.Internal, xla.ErrOutOfMemory, "xla: out of memory: INTERNAL: CUDA_ERROR_OUT_OF_MEMORY"},
		{"not there", "PJRT error (code=12): x", xla.Unimplemented, xla.ErrUnimplemented, "xla: operation not implemented: UNIMPLEMENTED: x"},
		{"unknown code", "PJRT error (code=99): x", 99, nil, "xla: CODE_99: x"},
		{"absurd code", "PJRT error (code=99999999999999999999): x", 0, nil, ""},
		{"no code", "PJRT error: x", 0, nil, ""},
		{"something else", "file not found", 0, nil, ""},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			original := errors.New(row.text)
			err := xla.WrapError(original)
			require.ErrorIs(t, err, original)
			var typed *xla.Error
			if row.code == 0 {
				assert.Same(t, original, err)
				return
			}
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, row.code, typed.Code)
			assert.EqualError(t, err, row.want)
			for _, kind := range []error{xla.ErrOutOfMemory, xla.ErrDeviceLost, xla.ErrUnimplemented} {
				assert.Equal(t, kind == row.is, errors.Is(err, kind), "%v", kind)
			}
		})
	}
	assert.NoError(t, xla.WrapError(nil))
	lacks := fmt.Errorf("Pad: %w", notimplemented.NotImplementedError)
	assert.ErrorIs(t, xla.WrapError(lacks), xla.ErrUnimplemented)
	assert.ErrorIs(t, xla.WrapError(lacks), lacks)
}

// Each code has a name of its own.
func TestCodeNames(t *testing.T) {
	names := map[string]bool{}
	for code := xla.Cancelled; code <= xla.Unauthenticated; code++ {
		assert.NotContains(t, code.String(), "CODE_")
		names[code.String()] = true
	}
	assert.Len(t, names, 16)
}

// Wrapping twice is wrapping once, and the original is always found again.
func TestWrapErrorLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			return fmt.Sprintf("%s: PJRT error (code=%d): %s", rapid.String().Draw(t, "context"),
				rapid.IntRange(0, 30).Draw(t, "code"),
				rapid.OneOf(rapid.String(), rapid.Just("PJRT error (code=3): inner")).Draw(t, "message"))
		})).Draw(t, "text")
		original := errors.New(text)
		once := xla.WrapError(original)
		if !errors.Is(once, original) {
			t.Fatalf("lost %q", text)
		}
		if twice := xla.WrapError(once); twice != once { // identity is the claim
			t.Fatalf("wrapped again: %v", twice)
		}
		outer := fmt.Errorf("outer: %w", once)
		if again := xla.WrapError(outer); errors.As(once, new(*xla.Error)) && again != outer { // identity is the claim
			t.Fatalf("wrapped again: %v", again)
		}
	})
}

func FuzzWrapError(f *testing.F) {
	f.Add("a: PJRT error (code=8): b")
	f.Add("PJRT error (code=-1): \xff" + strings.Repeat("x", 5000))
	f.Fuzz(func(t *testing.T, text string) {
		var typed *xla.Error
		if errors.As(xla.WrapError(errors.New(text)), &typed) && len(typed.Message) > 2100 {
			t.Fatalf("message of %d bytes", len(typed.Message))
		}
	})
}

// The real thing: a program that asks for 16 TiB.
func TestOutOfMemory(t *testing.T) {
	runtime := openCPU(t)
	builder := runtime.Builder("huge")
	x, err := builder.Parameter("x", shapes.Make(dtypes.Float32), nil)
	require.NoError(t, err)
	huge, err := builder.BroadcastInDim(x, shapes.Make(dtypes.Float32, 1<<21, 1<<21), nil)
	require.NoError(t, err)
	program, err := builder.Compile([]backends.Op{huge}, nil)
	if err == nil {
		defer program.Finalize()
		var input backends.Buffer
		input, err = runtime.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32))
		require.NoError(t, err)
		_, err = program.Execute([]backends.Buffer{input}, []bool{false}, 0)
	}
	require.Error(t, err)
	require.ErrorIs(t, xla.WrapError(err), xla.ErrOutOfMemory)
	t.Log(xla.WrapError(err))
}
