package launch_test

import (
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist/launch"
)

func TestRun_output(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			out, said, code := run(t, way, shell("echo out $R; echo error $R >&2; printf end"))
			require.Zero(t, code)
			require.Equal(t, "out 0\nend", out)
			require.Equal(t, []string{"[1] error 1", "error 0"}, sorted(said))

			o := shell("echo out $R; echo error $R >&2; printf end")
			o.Verbose = true
			out, said, code = run(t, way, o)
			require.Zero(t, code)
			require.Equal(t, []string{"[0] end", "[0] out 0", "[1] end", "[1] out 1"}, sorted(out))
			require.Equal(t, []string{"[0] error 0", "[1] error 1"}, sorted(said))

			// More than a pipe holds.
			o = shell("yes | head -c 300000")
			o.Verbose = true
			out, _, code = run(t, way, o)
			require.Zero(t, code)
			require.Len(t, out, 2*300_000*3)
		})
	}
}

// An error that ranks have alike is shown once, with all its lines, and the last line says how many had it; one that
// rank 0 has not is shown for one of them.
func TestRun_errors(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			const says = `[ $R != 0 ] || sleep 0.2; printf "2026/01/01 00:00:0$R train: boom\n\trank 0: x\n" >&2; `
			const end = `sleep 0.5; exit 3`
			o := shell(says + end)
			o.N = 4
			_, said, code := run(t, way, o)
			require.Equal(t, 3, code)
			require.Equal(t, "2026/01/01 00:00:00 train: boom\n\trank 0: x\nlazo run: 3 ranks (1 to 3) said the same as rank 0: train: boom\n", said)
			o = shell(says + `[ $R = 0 ] || echo "2026/01/01 00:00:00 ERROR rank 0 failed" >&2; ` + end)
			o.N = 3
			_, said, _ = run(t, way, o)
			require.Equal(t, 1, strings.Count(said, "] 2026/01/01 00:00:00 ERROR rank 0 failed\n"), said)
			require.Regexp(t, `lazo run: rank [12] said the same as rank [12]: ERROR rank 0 failed\n$`, said)
		})
	}
}

type broken struct{ error }

func (b broken) Write([]byte) (int, error) { return 0, b.error }

// Lost output is an error at the end. A reader that has ended is none, and ends no rank.
func TestRun_lostOutput(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for _, failure := range []error{syscall.ENOSPC, syscall.EPIPE} {
				o := shell("echo out; sleep 0.1; echo more && touch end$R")
				o.Dir, o.Stdout, o.Stderr = t.TempDir(), broken{failure}, io.Discard
				way(&o)
				err := launch.Run(t.Context(), o)
				if failure == syscall.EPIPE {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, failure)
					require.ErrorContains(t, err, "output of the ranks is lost")
				}
				for _, file := range []string{"end0", "end1"} {
					require.FileExists(t, filepath.Join(o.Dir, file))
				}
			}
		})
	}
}
