package xla_test

import (
	"bytes"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/xla"
)

func TestLog(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime || a.Key == "path" || a.Key == "version" || a.Key == "api" {
			return slog.Attr{}
		}
		return a
	}}))
	for _, row := range []struct{ cache, want string }{
		{"miss", `level=INFO msg="xla: plugin opened" plugin=cpu kind=cpu source="lazo install" devices=1 took=\S+
level=INFO msg="xla: program compiled" program=add cache=miss took=\S+ bytes=8
$`},
		{"hit", `program=add cache=hit`},
	} {
		log.Reset()
		addTo(t, plugintest.Uncached(t, xla.CompileCache(dir, 0), xla.Log(logger)), 10)
		require.Regexp(t, row.want, log.String())
	}
	log.Reset()
	addTo(t, plugintest.Uncached(t, xla.Log(logger)), 10)
	require.Contains(t, log.String(), "cache=off")
	log.Reset()
	r, err := xla.Open(t.Context(), xla.Go, xla.Log(logger))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	require.Regexp(t, regexp.MustCompile(`xla: plugin opened.* kind=go`), log.String())
	addTo(t, plugintest.Uncached(t, xla.Log(nil)), 10)
}

const quietChild = "LAZO_TEST_QUIET"

// By default, a program that opens, compiles, runs and fails writes nothing to its standard streams; XLA's log can be
// enabled.
func TestQuiet(t *testing.T) {
	if os.Getenv(quietChild) != "" {
		runQuietly(t)
		os.Exit(0) // before the testing package says PASS
	}
	for _, row := range []struct {
		name  string
		env   []string
		quiet bool
	}{
		{"defaults", nil, true},
		{"XLA may speak", []string{"TF_CPP_MIN_LOG_LEVEL=0", "TF_CPP_MAX_VLOG_LEVEL=1"}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestQuiet$")
			child.Env = append(os.Environ(), append(row.env, quietChild+"=1")...)
			var out, errs bytes.Buffer
			child.Stdout, child.Stderr = &out, &errs
			require.NoError(t, child.Run(), "%s%s", head(&out), head(&errs))
			require.Zero(t, out.Len(), "stdout: %s", head(&out))
			require.Equal(t, row.quiet, errs.Len() == 0, "stderr: %s", head(&errs))
			t.Logf("%s: %d bytes on stdout, %d on stderr", row.name, out.Len(), errs.Len())
		})
	}
}

func head(b *bytes.Buffer) string { return string(b.Bytes()[:min(b.Len(), 2000)]) }

func runQuietly(t *testing.T) {
	r, err := xla.Open(t.Context(), xla.CPU)
	require.NoError(t, err)
	addTo(t, r, 10)
	_, err = r.CompileStableHLO(t.Context(), "broken", "module { nonsense }", xla.Built{})
	require.Error(t, err)
	_, err = r.Compile("broken", func(g *graph.Graph) xla.Built {
		graph.Add(graph.Parameter(g, "x", shapes.Make(dtypes.Float32, 2)), graph.Parameter(g, "y", shapes.Make(dtypes.Float32, 3)))
		return xla.Built{}
	})
	require.Error(t, err)
	require.NoError(t, r.Close())
	if t.Failed() {
		_, _ = io.WriteString(os.Stderr, "the child failed")
		os.Exit(1)
	}
}
