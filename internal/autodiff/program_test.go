package autodiff

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/gomlx/backends"
	gomlxxla "github.com/gomlx/gomlx/backends/xla"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
)

var openCPU = sync.OnceValues(func() (backends.Backend, error) {
	gomlxxla.EnableAutoInstall(false)
	return gomlxxla.NewWithOptions(os.Getenv("PLUGIN")+",shared_buffers", nil)
})

func cpu(t testing.TB) backends.Backend {
	t.Helper()
	b, err := openCPU()
	require.NoError(t, err)
	return b
}

// programText is the StableHLO that GoMLX's XLA backend compiles for build's outputs; it logs it before it does.
func programText(t testing.TB, build func(g *graph.Graph) []*graph.Node) string {
	t.Helper()
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	defer klog.CaptureState().Restore()
	for name, value := range map[string]string{"logtostderr": "false", "v": "2", "skip_headers": "true"} {
		require.NoError(t, flags.Set(name, value))
	}
	var logged bytes.Buffer
	klog.SetOutput(&logged)
	g := graph.NewGraph(cpu(t), t.Name())
	defer g.Finalize()
	g.Compile(build(g)...)
	klog.Flush()
	_, text, found := strings.Cut(logged.String(), "StableHLO program:\n")
	require.True(t, found)
	text, _, found = strings.Cut(text, "\n}\n") // other lines of the log follow
	require.True(t, found)
	return text + "\n}\n"
}

// gradientText is the program of a workload's loss and gradients, by lazo's rules or by GoMLX's.
func gradientText(t testing.TB, w workload, gradient func(loss node, wrt ...node) []node) string {
	t.Helper()
	return programText(t, func(g *graph.Graph) []node {
		loss, wrt := w.loss(g)
		return append([]node{loss}, gradient(loss, wrt...)...)
	})
}

// stockGradient differentiates by GoMLX's own rules.
func stockGradient(loss node, wrt ...node) []node {
	Install()
	installed := graph.VJPRegistration
	defer func() { graph.VJPRegistration = installed }()
	graph.VJPRegistration = stock
	return graph.Gradient(loss, wrt...)
}

var dump = flag.String("dump", "", "write the counted programs into this folder, for testdata/jax_counts.py")

func TestGradientPrograms(t *testing.T) {
	for _, w := range workloads {
		t.Run(w.name, func(t *testing.T) {
			for kind, gradient := range map[string]func(node, ...node) []node{"gomlx": stockGradient, "lazo": Gradient} {
				text := gradientText(t, w, gradient)
				if *dump != "" {
					require.NoError(t, os.WriteFile(filepath.Join(*dump, w.name+"."+kind+".mlir"), []byte(text), 0o644))
				}
			}
		})
	}
}
