package shield_test

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/shield"
)

func TestCall(t *testing.T) {
	cause, list := errors.New("cause"), []error{}
	for name, row := range map[string]struct {
		f       func() error
		message string
		is      error
	}{
		"nil":           {func() error { return nil }, "", nil},
		"error":         {func() error { return cause }, "cause", cause},
		"panic":         {func() error { panic("no luck") }, "panic: no luck", nil},
		"panic, error":  {func() error { panic(cause) }, "panic: cause", cause},
		"panic of nil":  {func() error { panic(nil) }, "panic: panic called with nil argument", nil},
		"a Goexit":      {func() error { runtime.Goexit(); return nil }, "runtime.Goexit was called", shield.ErrGoexit},
		"nothing known": {func() error { return list[len(list)] }, "panic: runtime error: index out of range", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan error, 1)
			go shield.Call(row.f, func(err error) { got <- err })
			err := <-got
			if row.message == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, row.message)
			if row.is != nil {
				require.ErrorIs(t, err, row.is)
			}
			var p *shield.Panic
			if errors.As(err, &p) {
				require.Contains(t, string(p.Stack), "goroutine ")
				require.NotContains(t, err.Error(), "\n", "the stack is in its field alone")
			}
		})
	}
	require.ErrorIs(t, shield.Do(func() error { panic(cause) }), cause)
}
