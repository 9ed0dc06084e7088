//go:build unix

package signals

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContext(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(sent) { // as SIGHUP by nohup
			continue
		}
		ctx, stop := Context(t.Context(), func(s syscall.Signal) error { return fmt.Errorf("received %s", s) })
		require.NoError(t, ctx.Err())
		require.NoError(t, syscall.Kill(os.Getpid(), sent))
		<-ctx.Done()
		require.EqualError(t, context.Cause(ctx), "received "+sent.String())
		stop()
	}
}

func TestContext_endsWithoutASignal(t *testing.T) {
	cause := func(syscall.Signal) error { t.Error("no signal was sent"); return nil }
	ctx, stop := Context(t.Context(), cause)
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	parent, cancel := context.WithCancelCause(t.Context())
	ctx, stop = Context(parent, cause)
	defer stop()
	enough := fmt.Errorf("enough")
	cancel(enough)
	<-ctx.Done()
	require.Equal(t, enough, context.Cause(ctx))
}

func TestCatchBrokenPipes(t *testing.T) {
	undo := CatchBrokenPipes()
	defer undo()
	out, in, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, out.Close())
	old := os.Stdout
	os.Stdout = in
	defer func() { os.Stdout = old; in.Close() }()
	_, err = os.Stdout.WriteString("x")
	require.ErrorIs(t, err, syscall.EPIPE)
}
