package xla

// DescribedCacheHits is how many reports a described machine had from its cache.
func DescribedCacheHits(r *Runtime) int { return int(r.Backend.(*described).cache.hits.Load()) }

// DescribeTPU and DescribeGPU give what a plugin is told of a machine of this name.
var (
	DescribeTPU = func(name string) (map[string]any, []string, error) { return describeAs(TPU, name) }
	DescribeGPU = func(name string) (map[string]any, []string, error) { return describeAs(CUDA, name) }
)

func describeAs(kind, name string) (map[string]any, []string, error) {
	m, err := machineOf(Plugin{Kind: kind}, name, map[string]any{})
	return m.Options, m.Environment, err
}

// DescribedText is a program for a described machine that nobody has compiled yet.
func DescribedText(r *Runtime, text string) *Program {
	d := r.Backend.(*described)
	return &Program{name: text, text: text, block: 1, runs: &describedProgram{of: d, name: text, text: text, options: baseOptions(d.plugin.Kind)}}
}
