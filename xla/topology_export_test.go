package xla

// DescribedCacheHits counts the reports from a described machine's cache.
func DescribedCacheHits(r *Runtime) int { return int(r.Backend.(*described).cache.hits.Load()) }

// DescribedText returns a program for a described machine that is not compiled yet.
func DescribedText(r *Runtime, text string) *Program {
	d := r.Backend.(*described)
	return &Program{name: text, text: text, block: 1, runs: &describedProgram{of: d, name: text, text: text, options: baseOptions(d.plugin.Kind)}}
}
