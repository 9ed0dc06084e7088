package xla

// DescribedCacheHits counts the reports from a described machine's cache.
func DescribedCacheHits(r *Runtime) int { return int(r.Backend.(*described).cache.hits.Load()) }

// DescribeTPU and DescribeGPU return a plugin's description of a named machine.
var (
	DescribeTPU = func(name string) (map[string]any, []string, error) { return describeAs(TPU, name) }
	DescribeGPU = func(name string) (map[string]any, []string, error) { return describeAs(CUDA, name) }
)

func describeAs(kind, name string) (map[string]any, []string, error) {
	m, err := machineOf(Plugin{Kind: kind}, name, map[string]any{})
	return m.Options, m.Environment, err
}

// DescribedText returns a program for a described machine that is not compiled yet.
func DescribedText(r *Runtime, text string) *Program {
	d := r.Backend.(*described)
	return &Program{name: text, text: text, block: 1, runs: &describedProgram{of: d, name: text, text: text, options: baseOptions(d.plugin.Kind)}}
}
