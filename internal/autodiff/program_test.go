package autodiff_test

import (
	"flag"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/lazo-ml/lazo/internal/autodiff"
	"github.com/lazo-ml/lazo/internal/hlo"
)

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", draws); err != nil { // a command line that says otherwise is parsed later
		panic(err)
	}
	// klog's flusher never ends; the worker threads of the plugin are not goroutines.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// program is the StableHLO that a graph was lowered to.
type program string

// lower returns the program of build's outputs for the CPU, without compiling it.
func lower(build func(g *graph.Graph) []node) program {
	on := &writing{}
	g := graph.NewGraph(on, "gradient")
	defer g.Finalize()
	g.Compile(build(g)...)
	return on.text
}

// writing is a backend that keeps the program, and compiles nothing.
type writing struct {
	compute.Backend
	text program
}

func (w *writing) Capabilities() compute.Capabilities { return hlo.Capabilities() }

func (w *writing) Builder(name string) compute.Builder {
	return hlo.New(name, func(m *hlo.Module) (compute.Executable, error) {
		w.text = program(m.Text())
		return written{}, nil
	}).ForCPU(true).Apart()
}

// written is the executable of a graph that was not compiled.
type written struct{ compute.Executable }

func (written) Finalize() {}

var (
	statementStart = regexp.MustCompile(`^    (?:(%[^=]*) = )?"(?:stablehlo|chlo)\.(\w+)"\(([^)]*)\)`)
	statementEnd   = regexp.MustCompile(`^    [^ ].* -> (\(?tensor.*)$`)
	tensorType     = regexp.MustCompile(`tensor<((?:\d+x)*)[a-z]\w*(?:<\w+>)?>`)
	valueName      = regexp.MustCompile(`%\w+`)
)

// statement is an operation of a program, outside of the functions that reductions apply.
type statement struct {
	kind            string
	outputs, inputs []string
	elements        int
}

func (p program) statements(t testing.TB) []statement {
	t.Helper()
	var list []statement
	open := false // a statement that takes several lines has not ended
	for line := range strings.Lines(string(p)) {
		if rest, ok := strings.CutPrefix(line, "    return "); ok {
			values, _, _ := strings.Cut(rest, " : ")
			list = append(list, statement{kind: "return", inputs: valueName.FindAllString(values, -1)})
			continue
		}
		if m := statementStart.FindStringSubmatch(line); m != nil {
			require.False(t, open, "no end found of %+v", list)
			list = append(list, statement{kind: m[2], outputs: valueName.FindAllString(m[1], -1), inputs: valueName.FindAllString(m[3], -1)})
			open = true
		}
		if m := statementEnd.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && open {
			for _, tensor := range tensorType.FindAllStringSubmatch(m[1], -1) {
				size := 1
				for _, dim := range strings.Split(strings.TrimSuffix(tensor[1], "x"), "x") {
					if dim != "" {
						n, err := strconv.Atoi(dim)
						require.NoError(t, err)
						size *= n
					}
				}
				list[len(list)-1].elements += size
			}
			open = false
		} else if open && list[len(list)-1].kind == "return" {
			open = false
		}
	}
	require.False(t, open)
	require.NotEmpty(t, list)
	require.Equal(t, "return", list[len(list)-1].kind)
	return straight(list)
}

// straight removes the CPU lowering's layout of a product: the barrier after it, and the transpose after that. They do
// not come from the gradient rules, and other devices have none.
func straight(list []statement) []statement {
	same := map[string]string{} // maps a value to the product that it is
	return slices.DeleteFunc(list, func(s statement) bool {
		for i, in := range s.inputs {
			if of, ok := same[in]; ok && s.kind != "transpose" {
				s.inputs[i] = of
			}
		}
		switch {
		case s.kind == "optimization_barrier":
			same[s.outputs[0]] = s.inputs[0]
			return true
		case s.kind == "transpose" && same[s.inputs[0]] != "":
			same[s.outputs[0]] = same[s.inputs[0]]
			return true
		}
		return false
	})
}

// free are the operations that compute nothing: they are not counted, here and in testdata/jax_counts.py.
var free = []string{"constant", "iota", "reshape", "broadcast_in_dim", "reverse", "return"}

// counts has the operations of a program that lead to an output, and the elements that they produce.
type counts struct {
	byKind               map[string]int
	operations, elements int
}

func (p program) counts(t testing.TB) counts {
	t.Helper()
	c := counts{byKind: map[string]int{}}
	used := map[string]bool{}
	for _, s := range slices.Backward(p.statements(t)) {
		if s.kind != "return" && !slices.ContainsFunc(s.outputs, func(o string) bool { return used[o] }) {
			continue
		}
		for _, i := range s.inputs {
			used[i] = true
		}
		c.byKind[s.kind]++
		if !slices.Contains(free, s.kind) {
			c.operations++
			c.elements += s.elements
		}
	}
	return c
}

// written counts the operations of a kind, including unused ones.
func (p program) written(t testing.TB, kind string) int {
	t.Helper()
	n := 0
	for _, s := range p.statements(t) {
		if s.kind == kind {
			n++
		}
	}
	return n
}

// stockGradient differentiates by GoMLX's own rules.
func stockGradient(loss node, wrt ...node) []node {
	installed := graph.VJPRegistration
	defer func() { graph.VJPRegistration = installed }()
	graph.VJPRegistration = maps.Clone(autodiff.Stock)
	return graph.Gradient(loss, wrt...)
}
