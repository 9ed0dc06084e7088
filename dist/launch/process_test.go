package launch_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/loop"
)

func TestRun_passesSignals(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, c := range []struct {
				text  string
				cause error
				grace time.Duration
				code  int
			}{
				{`trap 'exit 5' INT`, &loop.SignalError{Signal: syscall.SIGINT}, 20 * time.Second, 5},
				{`trap 'exit 6' TERM`, context.Canceled, 20 * time.Second, 6},
				{`trap 'exit 7' TERM`, &loop.SignalError{Signal: syscall.SIGHUP}, 20 * time.Second, 7}, // S54
				{`trap '' TERM INT`, &loop.SignalError{Signal: syscall.SIGINT}, 100 * time.Millisecond, 128 + 9},
			} {
				ctx, cancel := context.WithCancelCause(t.Context())
				o := shell(c.text + `; touch ` + dir + `/$R; while :; do sleep 0.05; done`)
				var said bytes.Buffer
				o.Grace, o.Stderr = c.grace, &said
				way(&o)
				go func() {
					for r := 0; r < 2 && ctx.Err() == nil; {
						if os.Remove(filepath.Join(dir, string(rune('0'+r)))) == nil {
							r++
						}
						<-time.After(time.Millisecond)
					}
					cancel(c.cause)
				}()
				failed := (*launch.ExitError)(nil)
				require.ErrorAs(t, launch.Run(ctx, o), &failed, c.text)
				require.Equal(t, c.code, failed.Code, c.text)
				require.Regexp(t, `(?m)^lazo run: `+c.cause.Error()+`: the ranks receive the signal "(interrupt|terminated)" and have `+c.grace.String()+` to end$`, said.String())
				cancel(nil)
			}
		})
	}
}
