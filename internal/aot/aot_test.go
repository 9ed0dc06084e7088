package aot

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
)

// A child's error has the same text here, and matches the same sentinels.
func TestFailure_crossesProcesses(t *testing.T) {
	reported := &pjrt.Error{Call: "PJRT_Compile", Code: 3, Message: "no such option"}
	for _, err := range []error{
		errors.New("plain"), fmt.Errorf("topology %q: %w", "x", pjrt.ErrInvalidArgument), fmt.Errorf("here: %w", reported), reported,
	} {
		var sent bytes.Buffer
		require.NoError(t, gob.NewEncoder(&sent).Encode(answer{Failure: failureOf(err)}))
		var got answer
		require.NoError(t, gob.NewDecoder(&sent).Decode(&got))
		back := got.Failure.err()
		require.Equal(t, err.Error(), back.Error())
		require.Equal(t, errors.Is(err, pjrt.ErrInvalidArgument), errors.Is(back, pjrt.ErrInvalidArgument))
		require.NotErrorIs(t, back, pjrt.ErrNotFound)
		if errors.Is(err, reported) {
			var e *pjrt.Error
			require.ErrorAs(t, back, &e)
			require.Equal(t, reported, e)
		}
	}
}

func TestDescribe_aMissingPlugin(t *testing.T) {
	m := Machine{Plugin: filepath.Join(t.TempDir(), "missing.so")}
	_, err := m.Describe(t.Context(), time.Minute)
	require.ErrorContains(t, err, "missing.so")
	require.NotErrorIs(t, err, ErrCrash)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err = m.Describe(ctx, time.Minute)
	require.Error(t, err)
}

func TestDumped(t *testing.T) {
	dir := t.TempDir()
	options := Dumping(pjrt.CompileOptions{Debug: map[string]any{"xla_dump_to": "own", "other": 1}}, dir)
	require.Equal(t, map[string]any{"xla_dump_to": "own", "xla_dump_hlo_as_text": true, "other": 1}, options.Debug, "the caller's settings stay")
	text, err := Dumped(dir)
	require.NoError(t, err)
	require.Empty(t, text)
	for name, text := range map[string]string{"module_0001.x.after_optimizations.txt": "the program", "module_0002.y.after_optimizations.txt": "auxiliary", "module_0001.x.before_optimizations.txt": "before"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	text, err = Dumped(dir)
	require.NoError(t, err)
	require.Equal(t, "the program", text)
}
