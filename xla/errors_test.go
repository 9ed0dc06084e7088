package xla_test

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func TestWrapError(t *testing.T) {
	rows := []struct {
		name string
		code pjrt.Code
		text string
		is   error
		want string
	}{
		{"out of memory", pjrt.ResourceExhausted, "Out of memory", xla.ErrOutOfMemory, "xla: run step: PJRT_X: out of memory: RESOURCE_EXHAUSTED: Out of memory"},
		{"several lines", pjrt.Internal, "one\ntwo", nil, "xla: run step: PJRT_X: INTERNAL: one\ntwo"},
		{"device gone", pjrt.Unavailable, "socket closed", xla.ErrDeviceLost, "xla: run step: PJRT_X: device lost: UNAVAILABLE: socket closed"},
		{"data loss", pjrt.DataLoss, "x", xla.ErrDeviceLost, "xla: run step: PJRT_X: device lost: DATA_LOSS: x"},
		{"CUDA fault", pjrt.Internal, "CUDA_ERROR_ILLEGAL_ADDRESS: x", xla.ErrDeviceLost, "xla: run step: PJRT_X: device lost: INTERNAL: CUDA_ERROR_ILLEGAL_ADDRESS: x"},
		{"CUDA memory", pjrt.Internal, "CUDA_ERROR_OUT_OF_MEMORY", xla.ErrOutOfMemory, "xla: run step: PJRT_X: out of memory: INTERNAL: CUDA_ERROR_OUT_OF_MEMORY"},
		{"not there", pjrt.Unimplemented, "x", xla.ErrUnimplemented, "xla: run step: PJRT_X: operation not implemented: UNIMPLEMENTED: x"},
		{"bad shapes", pjrt.InvalidArgument, "x", xla.ErrInvalidArgument, "xla: run step: PJRT_X: invalid argument: INVALID_ARGUMENT: x"},
		{"too late", pjrt.DeadlineExceeded, "x", xla.ErrDeadline, "xla: run step: PJRT_X: deadline exceeded: DEADLINE_EXCEEDED: x"},
		{"no room for temporary files", pjrt.ResourceExhausted, "/tmp/a.ptx: No space left on device", syscall.ENOSPC, "xla: run step: PJRT_X: a disk is full, probably that of the folder for temporary files, which compilers write into: free some space, or set $TMPDIR: RESOURCE_EXHAUSTED: /tmp/a.ptx: No space left on device"},
		{"unknown code", 99, "x", nil, "xla: run step: PJRT_X: CODE_99: x"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			reported := &pjrt.Error{Call: "PJRT_X", Code: row.code, Message: row.text}
			original := during{reported}
			err := xla.WrapError(original)
			require.ErrorIs(t, err, original)
			var typed *xla.Error
			require.ErrorAs(t, err, &typed)
			assert.Equal(t, row.code, typed.Code)
			assert.EqualError(t, err, row.want)
			for _, kind := range []error{xla.ErrOutOfMemory, xla.ErrDeviceLost, xla.ErrUnimplemented, xla.ErrInvalidArgument, xla.ErrDeadline, xla.ErrClosed, syscall.ENOSPC} {
				assert.Equal(t, kind == row.is, errors.Is(err, kind), "%v", kind)
			}
			assert.Same(t, err, xla.WrapError(err), "wrapping twice is wrapping once")
			outer := fmt.Errorf("outer: %w", err)
			assert.Same(t, outer, xla.WrapError(outer))
		})
	}
	assert.NoError(t, xla.WrapError(nil))
	other := errors.New("file not found")
	assert.Same(t, other, xla.WrapError(other))
	assert.ErrorIs(t, xla.WrapError(fmt.Errorf("buffer: %w", pjrt.ErrClosed)), xla.ErrClosed)
	lacks := fmt.Errorf("Pad: %w", notimplemented.NotImplementedError)
	assert.ErrorIs(t, xla.WrapError(lacks), xla.ErrUnimplemented)
	assert.ErrorIs(t, xla.WrapError(lacks), lacks)
	long := xla.WrapError(&pjrt.Error{Code: pjrt.Internal, Message: strings.Repeat("\xff", 5000)})
	assert.Less(t, len(long.Error()), 2200)
}

// during is an error as the binding wraps it: its prefix appears once.
type during struct{ err *pjrt.Error }

func (d during) Error() string {
	return "pjrt: run step: " + strings.TrimPrefix(d.err.Error(), "pjrt: ")
}
func (d during) Unwrap() error { return d.err }

// A program asks for 16 TiB.
func TestOutOfMemory(t *testing.T) {
	runtime := plugintest.Uncached(t)
	builder := runtime.Builder("huge")
	main := builder.Main()
	x, err := main.Parameter("x", shapes.Make(dtypes.Float32), nil)
	require.NoError(t, err)
	huge, err := main.BroadcastInDim(x, shapes.Make(dtypes.Float32, 1<<21, 1<<21), nil)
	require.NoError(t, err)
	require.NoError(t, main.Return([]compute.Value{huge}, nil))
	program, err := builder.Compile()
	if err == nil {
		defer program.Finalize()
		var input compute.Buffer
		input, err = runtime.BufferFromFlatData(0, []float32{1}, shapes.Make(dtypes.Float32))
		require.NoError(t, err)
		_, err = program.Execute([]compute.Buffer{input}, []bool{false}, 0)
	}
	require.Error(t, err)
	require.ErrorIs(t, xla.WrapError(err), xla.ErrOutOfMemory)
	t.Log(xla.WrapError(err))
}
